// The client for Go at running servers: HOSTS, with commas. Says "done", or what is not as it should be. The leader is to
// be killed and started again when it says "restart now", and a line given to it behind that.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

func want(what string, found, wanted interface{}) {
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		fmt.Println("failed:", what, "is", found)
		os.Exit(1)
	}
}

func connected(events <-chan zk.Event) {
	for event := range events {
		if event.State == zk.StateHasSession {
			return
		}
	}
}

func main() {
	client, events, err := zk.Connect(strings.Split(os.Args[1], ","), 10*time.Second)
	want("connecting", err, nil)
	connected(events)
	session := client.SessionID()
	all := zk.WorldACL(zk.PermAll)

	path, err := client.Create("/go", []byte("first"), 0, all)
	want("a create", path, "/go")
	_, err = client.Create("/go", nil, 0, all)
	want("a second one", err, zk.ErrNodeExists)
	path, err = client.Create("/go/n-", nil, zk.FlagEphemeral|zk.FlagSequence, all)
	want("a numbered one", path, "/go/n-0000000000")

	data, stat, watch, err := client.GetW("/go")
	want("the data", string(data), "first")
	want("the version", stat.Version, 0)
	_, err = client.Set("/go", []byte("second"), 0)
	want("a write", err, nil)
	want("the event", (<-watch).Type, zk.EventNodeDataChanged)
	_, err = client.Set("/go", []byte("x"), 0)
	want("a write of an old version", err, zk.ErrBadVersion)
	children, _, err := client.Children("/go")
	want("the children", children, "[n-0000000000]")

	want("a credential", client.AddAuth("digest", []byte("bob:secret")), nil)
	_, err = client.Create("/go-own", nil, 0, zk.AuthACL(zk.PermAll))
	want("a node of one's own", err, nil)
	acl, _, err := client.GetACL("/go-own")
	want("its access list", acl, "[{31 digest bob:fyVmFCwVbTJYrznoSu1koqYEYF0=}]")

	create := &zk.CreateRequest{Path: "/go-t", Data: []byte("1"), Acl: all}
	set := &zk.SetDataRequest{Path: "/go-t", Data: []byte("2"), Version: 0}
	results, err := client.Multi(create, set, &zk.DeleteRequest{Path: "/go-t", Version: 1})
	want("the results of a transaction", len(results), 3)
	_, err = client.Multi(create, &zk.CheckVersionRequest{Path: "/go-t", Version: 7})
	want("a transaction that fails", err, zk.ErrBadVersion)
	lock := zk.NewLock(client, "/go-lock", all)
	want("locking", lock.Lock(), nil)
	want("unlocking", lock.Unlock(), nil)

	there, _, watch, err := client.ExistsW("/go-later")
	want("what comes later", there, false)
	fmt.Println("restart now")
	bufio.NewReader(os.Stdin).ReadString('\n')
	// A server of quorate keeps the connection of a client that waits for nothing.
	for _, err = client.Create("/go-later", nil, 0, all); err == zk.ErrConnectionClosed || err == zk.ErrNoServer; {
		time.Sleep(100 * time.Millisecond)
		_, err = client.Create("/go-later", nil, 0, all)
	}
	want("a create after that", err, nil)
	want("the session", client.SessionID(), session)
	want("the event after that", (<-watch).Type, zk.EventNodeCreated)
	want("a delete", client.Delete("/go-later", -1), nil)
	client.Close()
	fmt.Println("done")
}
