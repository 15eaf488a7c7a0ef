import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.leader.LeaderElectionSupport;

/** Apache's own candidate: HOSTS ROOT NAME SESSION_MS. Tells its events; ends in order when stdin does. */
public class Elector {
    public static void main(String[] arguments) throws Exception {
        int timeout = Integer.parseInt(arguments[3]);
        ZooKeeper zooKeeper = new ZooKeeper(arguments[0], timeout, event -> { });
        LeaderElectionSupport support = new LeaderElectionSupport();
        support.setZooKeeper(zooKeeper);
        support.setRootNodeName(arguments[1]);
        support.setHostName(arguments[2]);
        support.addListener(event -> System.out.println("event " + event));
        support.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            System.out.println("leader " + support.getLeaderHostName());
        }
        support.stop();
        zooKeeper.close();
        System.exit(0);
    }
}
