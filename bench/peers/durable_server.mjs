// node durable_server.mjs PORT DATA MODULES: the reference server, with its files on the disk.

import { createRequire } from 'node:module'

const [port, dataDir, modules] = process.argv.slice(2)
const { DurableStreamTestServer } = createRequire(`${modules}/package.json`)('@durable-streams/server')

await new DurableStreamTestServer({
  port: Number(port), host: '127.0.0.1', dataDir, compression: false
}).start()
