// ZooKeeper's client for Java and recipes of Curator at servers whose leader is killed: HOSTS, with commas.
//
// It says "ready" when all recipes stand. Told "arm N" it sets a watch, says "armed N", and the leader is killed. Told
// "hold N" it sees that everything goes on, and says "held N". Told "end" it counts, and says "done" with the counts.
// Whatever is not as it must be is said as "failed".

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;

public class Judge {
    static final int SESSION = 10_000;
    static final int CLIENTS = 3;
    static final long PATIENCE = 60;

    static final AtomicInteger inside = new AtomicInteger(), locked = new AtomicInteger();
    static final AtomicInteger leaders = new AtomicInteger(), elected = new AtomicInteger();
    static volatile boolean ending, closing;

    /** One whose writes are kept once they are acknowledged, and who takes the mutex now and then. */
    static class Worker extends Thread {
        final CuratorFramework client;
        final String name;
        final long session;
        final InterProcessMutex mutex;
        final AtomicInteger taken = new AtomicInteger();
        final Set<String> acknowledged = new HashSet<>();
        volatile int written;

        Worker(CuratorFramework client, String name) throws Exception {
            this.client = client;
            this.name = name;
            session = client.getZookeeperClient().getZooKeeper().getSessionId();
            mutex = new InterProcessMutex(client, "/mutex");
        }

        @Override
        public void run() {
            try {
                while (!ending) {
                    String node = name + "-" + written;
                    make(client, "/writes/" + node, node);
                    acknowledged.add(node);
                    written++;
                    if (written % 20 == 0) {
                        lock();
                    }
                    // The pace: this is no test of how much the servers bear.
                    LockSupport.parkNanos(1_000_000);
                }
            } catch (Throwable error) {
                fail("worker " + name + ": " + error);
            }
        }

        void lock() throws Exception {
            if (!mutex.acquire(PATIENCE, TimeUnit.SECONDS)) {
                fail("the mutex was not to be had");
            }
            if (inside.incrementAndGet() != 1) {
                fail("two have the mutex");
            }
            client.checkExists().forPath("/mutex");
            inside.decrementAndGet();
            mutex.release();
            taken.incrementAndGet();
            locked.incrementAndGet();
        }
    }

    static void say(String line) {
        System.out.println(line);
    }

    static void fail(String reason) {
        say("failed: " + reason);
        Runtime.getRuntime().halt(1);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Creates it. Where the answer was lost and another try found it there, it is the one of the first try. */
    static void make(CuratorFramework client, String path, String data) throws Exception {
        try {
            client.create().forPath(path, bytes(data));
        } catch (KeeperException.NodeExistsException again) {
            String found = new String(client.getData().forPath(path), StandardCharsets.UTF_8);
            if (!found.equals(data)) {
                fail(path + " has " + found);
            }
        }
    }

    static void until(String what, Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
        while (!holds.call()) {
            if (System.nanoTime() > end) {
                fail("waited for " + what);
            }
            LockSupport.parkNanos(5_000_000);
        }
    }

    static CuratorFramework client(String hosts) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(hosts, SESSION, SESSION, new RetryForever(50));
        client.getConnectionStateListenable().addListener((which, state) -> {
            if (state == ConnectionState.LOST) {
                fail("a session of Curator's was lost");
            }
        });
        client.start();
        client.blockUntilConnected();
        return client;
    }

    static LeaderLatch latch(CuratorFramework client, String name) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, "/latch", name);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                elected.incrementAndGet();
                if (leaders.incrementAndGet() != 1 && !closing) {
                    fail("two lead");
                }
            }

            @Override
            public void notLeader() {
                leaders.decrementAndGet();
            }
        });
        latch.start();
        return latch;
    }

    final String hosts;
    final List<Worker> workers = new ArrayList<>();
    final BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
    final ZooKeeper plain;
    final long session;
    final CuratorFramework one, two;
    final PersistentNode persistent;
    final CuratorCache cache;

    Judge(String hosts) throws Exception {
        this.hosts = hosts;
        for (int name = 0; name < CLIENTS; name++) {
            workers.add(new Worker(client(hosts), "worker" + name));
        }
        one = workers.get(0).client;
        two = workers.get(1).client;
        for (String parent : new String[] {"/writes", "/cache", "/transactions", "/watched"}) {
            make(one, parent, "0");
        }
        plain = connected(hosts);
        session = plain.getSessionId();
        persistent = new PersistentNode(one, CreateMode.EPHEMERAL, false, "/persistent", bytes("mine"));
        persistent.start();
        if (!persistent.waitForInitialCreate(PATIENCE, TimeUnit.SECONDS)) {
            fail("no persistent node");
        }
        cache = CuratorCache.build(two, "/cache");
        cache.start();
        for (Worker worker : workers) {
            latch(worker.client, worker.name);
            worker.start();
        }
        until("a leader", () -> leaders.get() == 1);
    }

    static ZooKeeper connected(String hosts) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(hosts, SESSION, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            } else if (event.getState() == KeeperState.Expired) {
                fail("a session expired");
            }
        });
        if (!connected.await(PATIENCE, TimeUnit.SECONDS)) {
            fail("not connected to " + hosts);
        }
        return client;
    }

    /** Waits until its server has all that was acknowledged before. */
    static void sync(ZooKeeper client) throws Exception {
        CountDownLatch synced = new CountDownLatch(1);
        client.sync("/", (code, path, context) -> synced.countDown(), null);
        synced.await();
    }

    /** A watch that outlives its connection. */
    void arm() throws Exception {
        plain.getData("/watched", event -> {
            if (event.getType() != EventType.None) {
                events.add(event);
            }
        }, null);
    }

    void hold(String round) throws Exception {
        one.setData().forPath("/watched", bytes(round));
        WatchedEvent event = events.poll(PATIENCE, TimeUnit.SECONDS);
        if (event == null || event.getType() != EventType.NodeDataChanged || !event.getPath().equals("/watched")) {
            fail("the watch told " + event);
        }
        for (Worker worker : workers) {
            int written = worker.written, taken = worker.taken.get();
            until("writes of " + worker.name, () -> worker.written >= written + 50);
            until("the mutex for " + worker.name, () -> worker.taken.get() > taken);
        }
        until("a leader", () -> leaders.get() == 1);

        transactions(round);

        // A persistent node comes again, of the same session.
        long created = one.checkExists().forPath("/persistent").getCzxid();
        one.delete().guaranteed().forPath("/persistent");
        until("the persistent node", () -> {
            var stat = one.checkExists().forPath("/persistent");
            return stat != null && stat.getCzxid() > created;
        });

        make(one, "/cache/" + round, round);
        one.setData().forPath("/cache", bytes(round));
        until("the cache", () -> cache.get("/cache/" + round).isPresent()
            && cache.get("/cache").map(data -> new String(data.getData()).equals(round)).orElse(false));

        vanishing(round);
        if (!events.isEmpty()) {
            fail("the watch told more: " + events);
        }
    }

    /** All of one is there, and nothing of another that cannot be carried out. */
    void transactions(String round) throws Exception {
        String path = "/transactions/" + round;
        try {
            one.transaction().forOperations(
                one.transactionOp().create().forPath(path, bytes(round)),
                one.transactionOp().setData().forPath("/transactions", bytes(round)),
                one.transactionOp().check().forPath(path),
                one.transactionOp().create().withMode(CreateMode.EPHEMERAL).forPath(path + "-held", bytes(round)));
        } catch (KeeperException.NodeExistsException again) {
            say("a transaction was carried out, and its answer lost");
        }
        for (String each : new String[] {path, path + "-held", "/transactions"}) {
            if (!new String(one.getData().forPath(each)).equals(round)) {
                fail(each + " is not as the transaction makes it");
            }
        }
        try {
            one.transaction().forOperations(
                one.transactionOp().create().forPath(path + "-never"),
                one.transactionOp().delete().forPath("/no/such/node"));
            fail("a transaction that cannot be carried out was");
        } catch (KeeperException.NoNodeException refused) {
            if (one.checkExists().forPath(path + "-never") != null) {
                fail("half a transaction");
            }
        }
    }

    /** A container without children and a node whose time is over go by themselves; the watches tell it. */
    void vanishing(String round) throws Exception {
        String container = "/container-" + round, timed = "/timed-" + round;
        one.create().withMode(CreateMode.CONTAINER).forPath(container);
        make(one, container + "/child", round);
        one.create().withTtl(500).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(timed);
        CountDownLatch gone = new CountDownLatch(2);
        sync(plain);
        for (String path : new String[] {container, timed}) {
            var stat = plain.exists(path, event -> {
                if (event.getType() == EventType.NodeDeleted) {
                    gone.countDown();
                }
            });
            if (stat == null && !path.equals(timed)) {
                fail("a container with a child goes");
            } else if (stat == null) {
                gone.countDown();
            }
        }
        one.delete().forPath(container + "/child");
        if (!gone.await(PATIENCE, TimeUnit.SECONDS)) {
            fail("a container or a node whose time is over stays");
        }
    }

    /** Every acknowledged write is on every server, and all sessions are those of the beginning. */
    void end() throws Exception {
        ending = true;
        Set<String> acknowledged = new HashSet<>();
        for (Worker worker : workers) {
            worker.join();
            acknowledged.addAll(worker.acknowledged);
            if (worker.client.getZookeeperClient().getZooKeeper().getSessionId() != worker.session) {
                fail("another session of " + worker.name);
            }
        }
        if (plain.getSessionId() != session) {
            fail("another session");
        }
        for (String host : hosts.split(",")) {
            ZooKeeper reader = connected(host);
            sync(reader);
            Set<String> found = new HashSet<>(reader.getChildren("/writes", false));
            if (!found.equals(acknowledged)) {
                fail(host + " has " + found.size() + " writes, acknowledged were " + acknowledged.size());
            }
            reader.close();
        }
        // A session that ends makes another the leader before the one who led is told.
        closing = true;
        for (Worker worker : workers) {
            worker.client.close();
        }
        plain.close();
        say("done: " + acknowledged.size() + " writes, " + locked + " times the mutex, " + elected + " times elected");
    }

    public static void main(String[] arguments) throws Exception {
        try {
            Judge judge = new Judge(arguments[0]);
            say("ready");
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split(" ");
                switch (words[0]) {
                    case "arm" -> {
                        judge.arm();
                        say("armed " + words[1]);
                    }
                    case "hold" -> {
                        judge.hold(words[1]);
                        say("held " + words[1]);
                    }
                    default -> {
                        judge.end();
                        System.exit(0);
                    }
                }
            }
        } catch (Throwable error) {
            error.printStackTrace();
            fail(error.toString());
        }
    }
}
