// node durable_worker.mjs PORT SERVER_URL MODULES: POST /runs starts a run that appends to a stream
// of its own, through the client that its makers recommend for many writes.

import { createServer } from 'node:http'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { fragments } from './fragments.mjs'

const [port, server, modules] = process.argv.slice(2)
const require = createRequire(`${modules}/package.json`)
const { DurableStream, IdempotentProducer } = require('@durable-streams/client')

const MAX_WAITING = 2000 // fragments given to the producer and not on the disk yet

async function drive (stream, run, plan) {
  const failed = (error) => console.error(run, error)
  const producer = new IdempotentProducer(stream, run, { autoClaim: true, onError: failed })
  let waiting = 0
  for await (const text of fragments(plan)) {
    producer.append(JSON.stringify({ text }))
    if (!plan.rate && ++waiting % MAX_WAITING === 0) await producer.flush()
  }
  await producer.flush()
  await producer.close()
}

createServer(async (request, response) => {
  let body = ''
  for await (const part of request) body += part
  const run = randomUUID()
  const path = `/v1/stream/${run}`
  const stream = await DurableStream.create({
    url: server + path, contentType: 'application/json'
  })
  drive(stream, run, JSON.parse(body)).catch(console.error)
  const answer = JSON.stringify({ path })
  response.writeHead(200, { 'Content-Length': answer.length }).end(answer)
}).listen(Number(port), '127.0.0.1')
