import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport.EventType;

/** LeaderElectionSupport as a candidate: HOSTS ROOT NAME SESSION_MS SEAT. What it says and is told: see Other. */
public class Support {
    public static void main(String[] arguments) throws Exception {
        String name = arguments[2], seat = arguments[4];
        ZooKeeper zooKeeper = new ZooKeeper(arguments[0], Integer.parseInt(arguments[3]), event -> { });
        LeaderElectionSupport support = new LeaderElectionSupport();
        support.setZooKeeper(zooKeeper);
        support.setRootNodeName(arguments[1]);
        support.setHostName(name);
        support.addListener(event -> {
            if (event == EventType.FAILED) {
                System.out.println("failed");
            } else if (event == EventType.ELECTED_COMPLETE) {
                try {
                    zooKeeper.create(seat, name.getBytes(), Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
                    System.out.println("leads");
                } catch (Exception error) {
                    System.out.println("failed: " + error);
                }
            }
        });
        support.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            System.out.println("leader " + support.getLeaderHostName());
        }
        if (support.getLeaderHostName().equals(name)) {
            zooKeeper.delete(seat, -1);
        }
        support.stop();
        zooKeeper.close();
        System.exit(0);
    }
}
