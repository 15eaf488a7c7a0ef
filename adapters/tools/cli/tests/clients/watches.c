// ZooKeeper's client for C with many watches: HOST_TO_DIE,HOST_TO_GO_ON HOST_OF_THE_WRITER COUNT.
//
// It watches so many nodes, says "watching" and waits for the death of its server. Connected again, it says so, lets
// another session change every node, and says "done" once each watch has told its change, and that once.

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#define LENGTH 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int connected, lost, answered, events;
static int *told;

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("failed: ");
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    exit(1);
}

static void say(const char *word) {
    printf("%s\n", word);
    fflush(stdout);
}

static void count(int *counter) {
    pthread_mutex_lock(&lock);
    ++*counter;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void until(int *counter, int wanted) {
    pthread_mutex_lock(&lock);
    while (*counter < wanted) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void on_session(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)path, (void)context;
    if (type != ZOO_SESSION_EVENT) fail("an event of the session of type %d", type);
    if (state == ZOO_CONNECTED_STATE) count(&connected);
    else if (state == ZOO_CONNECTING_STATE) count(&lost);
    else fail("the session is in state %d", state);
}

static void on_writer(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)type, (void)path, (void)context;
    if (state != ZOO_CONNECTED_STATE) fail("the writer is in state %d", state);
}

static void path_of(int index, char *path) {
    int head = sprintf(path, "/watched/%06d-", index);
    memset(path + head, 'x', LENGTH - head);
    path[LENGTH] = 0;
}

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    char expected[LENGTH + 1];
    (void)handle, (void)state;
    if (type == ZOO_SESSION_EVENT) return;
    path_of((int)((int *)context - told), expected);
    if (type != ZOO_CHANGED_EVENT || strcmp(path, expected)) fail("an event of type %d of %s", type, path);
    ++*(int *)context;
    count(&events);
}

static void on_string(int code, const char *value, const void *context) {
    (void)value, (void)context;
    if (code != ZOK) fail("a create: %s", zerror(code));
    count(&answered);
}

static void on_data(int code, const char *value, int length, const struct Stat *stat, const void *context) {
    (void)value, (void)length, (void)stat, (void)context;
    if (code != ZOK) fail("a read: %s", zerror(code));
    count(&answered);
}

static void on_stat(int code, const struct Stat *stat, const void *context) {
    (void)stat, (void)context;
    if (code != ZOK) fail("a write: %s", zerror(code));
    count(&answered);
}

// Waits for the answer to a read of this session, which comes behind what was told to its watches before.
static void fence(zhandle_t *handle) {
    answered = 0;
    if (zoo_aexists(handle, "/watched", 0, on_stat, NULL) != ZOK) fail("a read behind the watches");
    until(&answered, 1);
}

static void fine(const char *what, int code) {
    if (code != ZOK) fail("%s: %s", what, zerror(code));
}

int main(int argc, char **argv) {
    char path[LENGTH + 1];
    int total = argc == 4 ? atoi(argv[3]) : 0;
    zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
    zoo_deterministic_conn_order(1);
    told = calloc(total, sizeof *told);
    zhandle_t *watcher = zookeeper_init(argv[1], on_session, 10000, NULL, NULL, 0);
    zhandle_t *writer = zookeeper_init(argv[2], on_writer, 10000, NULL, NULL, 0);
    until(&connected, 1);
    int64_t session = zoo_client_id(watcher)->client_id;

    fine("the parent", zoo_create(writer, "/watched", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    for (int index = 0; index < total; index++) {
        path_of(index, path);
        fine("a create", zoo_acreate(writer, path, "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, on_string, NULL));
    }
    until(&answered, total);
    fine("a sync", zoo_async(watcher, "/", on_string, NULL));
    for (int index = 0; index < total; index++) {
        path_of(index, path);
        fine("a read", zoo_awget(watcher, path, on_event, told + index, on_data, NULL));
    }
    until(&answered, 2 * total + 1);
    say("watching");

    until(&connected, 2);
    fence(watcher);
    if (events || lost != 1 || connected != 2) fail("%d events, lost %d times, connected %d times", events, lost, connected);
    if (zoo_client_id(watcher)->client_id != session) fail("another session");
    say("connected");

    answered = 0;
    for (int index = 0; index < total; index++) {
        path_of(index, path);
        fine("a write", zoo_aset(writer, path, "2", 1, -1, on_stat, NULL));
    }
    until(&answered, total);
    until(&events, total);
    fine("a sync", zoo_async(watcher, "/", on_string, NULL));
    until(&answered, total + 1);
    fence(watcher);
    for (int index = 0; index < total; index++) {
        if (told[index] != 1) fail("watch %d told %d changes", index, told[index]);
    }
    if (events != total || lost != 1 || connected != 2) fail("%d events, lost %d times, connected %d times", events, lost, connected);
    say("done");
    return 0;
}
