// node-zookeeper-client at running servers: HOSTS, with commas. Says "all as it should be", or what is not.
const assert = require('assert');
const zookeeper = require('node-zookeeper-client');

const client = zookeeper.createClient(process.argv[2], { sessionTimeout: 10000 });
const seen = [];

/** A call with a callback as its last argument, as a promise of what that is given. */
function call(name, ...given) {
  return new Promise((resolve, reject) => {
    client[name](...given, (error, ...found) => (error ? reject(error) : resolve(found)));
  });
}

function commit(transaction) {
  return new Promise((resolve, reject) => {
    transaction.commit((error, results) => (error ? reject(error) : resolve(results)));
  });
}

async function fails(name, promise) {
  await assert.rejects(promise, (error) => error.name === name || error.getName() === name);
}

function connected() {
  return new Promise((resolve) => client.once('connected', resolve));
}

async function judge() {
  const session = client.getSessionId().toString('hex');
  assert.deepEqual(await call('create', '/node', Buffer.from('first')), ['/node']);
  await fails('NODE_EXISTS', call('create', '/node'));
  const [numbered] = await call('create', '/node/n-', Buffer.from(''), zookeeper.CreateMode.EPHEMERAL_SEQUENTIAL);
  assert.equal(numbered, '/node/n-0000000000');

  const watch = (event) => seen.push(event.name);
  const [data, stat] = await call('getData', '/node', watch);
  assert.equal(data.toString(), 'first');
  assert.equal(stat.version, 0);
  await call('setData', '/node', Buffer.from('second'), 0);
  assert.deepEqual(seen, ['NODE_DATA_CHANGED']);
  await fails('BAD_VERSION', call('setData', '/node', Buffer.from('x'), 0));
  assert.deepEqual((await call('getChildren', '/node'))[0], ['n-0000000000']);
  assert.equal((await call('exists', '/none'))[0], null);

  client.addAuthInfo('digest', Buffer.from('bob:secret'));
  await call('create', '/own', Buffer.from('x'), zookeeper.ACL.CREATOR_ALL_ACL);
  const [[entry]] = await call('getACL', '/own');
  assert.equal(entry.id.id, 'bob:fyVmFCwVbTJYrznoSu1koqYEYF0=');

  const whole = client.transaction().create('/t', Buffer.from('1')).setData('/t', Buffer.from('2'));
  assert.equal((await commit(whole.check('/t', 1).remove('/t'))).length, 4);
  await fails('BAD_VERSION', commit(client.transaction().create('/t').check('/t', 7)));
  assert.equal((await call('exists', '/t'))[0], null);
  await call('mkdirp', '/a/b/c');

  // The connection breaks: the session and the watch outlive it.
  await call('getData', '/node', watch);
  const again = connected();
  client.connectionManager.socket.destroy();
  await again;
  assert.equal(client.getSessionId().toString('hex'), session);
  await call('setData', '/node', Buffer.from('third'));
  await call('exists', '/node');
  assert.deepEqual(seen, ['NODE_DATA_CHANGED', 'NODE_DATA_CHANGED']);
  await call('remove', numbered);
}

client.connect();
connected()
  .then(judge)
  .then(() => console.log('all as it should be'))
  .catch((error) => {
    console.log('failed', error);
    process.exitCode = 1;
  })
  .finally(() => client.close());
