// node resumable_stream.mjs PORT REDIS_URL MODULES: `resumable-stream` behind Node's own server.

import { createServer } from 'node:http'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fragments } from './fragments.mjs'

const [port, redisUrl, modules] = process.argv.slice(2)
const require = createRequire(`${modules}/package.json`)
const { createClient } = require('redis')
const { createResumableStreamContext } = require('resumable-stream')

const publisher = createClient({ url: redisUrl })
const subscriber = createClient({ url: redisUrl })
await Promise.all([publisher.connect(), subscriber.connect()])
const context = createResumableStreamContext({ waitUntil: null, publisher, subscriber })

/** The answer as the model's client would give it: a stream of events as text. */
function answer (plan) {
  const source = fragments(plan)
  let number = 0
  return new ReadableStream({
    async pull (controller) {
      const { done, value } = await source.next()
      if (done) return controller.close()
      controller.enqueue(`id: ${number++}\nevent: delta\ndata: {"text":"${value}"}\n\n`)
    }
  })
}

createServer(async (request, response) => {
  const url = new URL(request.url, 'http://localhost')
  const plan = JSON.parse(url.searchParams.get('plan'))
  const stream = await context.resumableStream(url.pathname.slice(1), () => answer(plan))
  if (stream === null) return response.writeHead(204).end()
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' })
  response.write(': open\n\n')
  for await (const chunk of stream) {
    if (!response.write(chunk)) await Promise.race([once(response, 'drain'), once(response, 'close')])
  }
  response.end()
}).listen(Number(port), '127.0.0.1')
