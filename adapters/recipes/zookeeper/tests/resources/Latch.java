import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.imps.ProtectedUtils;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;

/** Curator's LeaderLatch as a candidate: HOSTS ROOT NAME SESSION_MS SEAT. What it says and is told: see Other. */
public class Latch {
    public static void main(String[] arguments) throws Exception {
        String root = arguments[1], name = arguments[2], seat = arguments[4];
        int timeout = Integer.parseInt(arguments[3]);
        CuratorFramework client =
            CuratorFrameworkFactory.newClient(arguments[0], timeout, timeout, new RetryForever(100));
        client.start();
        LeaderLatch latch = new LeaderLatch(client, root, name);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                try {
                    client.create().withMode(CreateMode.EPHEMERAL).forPath(seat, name.getBytes());
                    System.out.println("leads");
                } catch (Exception error) {
                    System.out.println("failed: " + error);
                }
            }

            @Override
            public void notLeader() { }
        }, Executors.newSingleThreadExecutor());
        latch.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            for (String child : client.getChildren().forPath(root)) {
                if (!ProtectedUtils.isProtectedZNode(child)) {
                    System.out.println("failed: not a name of Curator's: " + child);
                }
            }
            System.out.println("leader " + latch.getLeader().getId());
        }
        if (latch.hasLeadership()) {
            client.delete().forPath(seat);
        }
        latch.close();
        client.close();
        System.exit(0);
    }
}
