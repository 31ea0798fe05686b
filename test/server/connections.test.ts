/**
 * Client behaviour on a connection: pipelining, malformed input, and half-close.
 */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { once } from "node:events"
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { Turns } from "../../src/config/clock/cooperative.ts"
import { watchConnections } from "../../src/server/connections/Connections.ts"
import { cutsOf } from "../support/cuts.ts"
import { runs } from "../support/effort.ts"
import { untilHolds } from "../support/until.ts"

interface Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

let server: Server
let serve: (request: IncomingMessage, response: ServerResponse) => void
const asked: Array<Asked> = []
const clients: Array<Socket> = []

beforeEach(async () => {
  asked.length = 0
  server = createServer((request, response) => {
    asked.push({ request, response })
    serve(request, response)
  })
  watchConnections(server)
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy()
  server.closeAllConnections()
  server.close()
  await once(server, "close")
})

const port = () => (server.address() as AddressInfo).port

const open = () => {
  const client = connect({ port: port(), host: "127.0.0.1", allowHalfOpen: true })
  client.on("error", () => {})
  clients.push(client)
  return client
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: gateway\r\n\r\n`

/** A complete request of another client: the server has then seen all earlier input. */
const others = async () => {
  const before = serve
  serve = (request, response) => request.url === "/others" ? response.end() : before(request, response)
  const asking = request({ port: port(), host: "127.0.0.1", path: "/others", agent: false }).end()
  const [response] = await once(asking, "response") as [IncomingMessage]
  response.resume()
  await once(response, "end")
  serve = before
}

const paths = () => asked.map(({ request }) => request.url).filter((path) => path !== "/others")

const answer = (index: number, body: string) =>
  asked.filter(({ request }) => request.url !== "/others")[index]!.response.end(body)

describe("pipelined requests", () => {
  it("are processed one by one, each after the previous reply", async () => {
    serve = () => {}
    const client = open()
    client.end(get("/1") + get("/2") + get("/3"))
    const replies = text(client)
    for (const [i, path] of ["/1", "/2", "/3"].entries()) {
      await untilHolds(() => paths().includes(path))
      await others()
      assert.lengthOf(paths(), i + 1)
      answer(i, `reply ${path}`)
    }
    const all = await replies
    assert.deepStrictEqual(all.match(/reply \/\d/g), ["reply /1", "reply /2", "reply /3"])
  })

  it("with bodies are read in any segmentation", async () => {
    serve = (request, response) => void text(request).then((body) => response.end(`[${request.url} ${body}]`))
    const sized = (path: string, body: string) =>
      `POST ${path} HTTP/1.1\r\nhost: gateway\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    const chunked = (path: string, body: string) =>
      `POST ${path} HTTP/1.1\r\nhost: gateway\r\ntransfer-encoding: chunked\r\n\r\n` +
      `${body.length.toString(16)}\r\n${body}\r\n0\r\nx-last: yes\r\n\r\n`
    const sent = get("/1") + sized("/2", "a\r\n\r\nb\r\n\r\n") + get("/3") + chunked("/4", "c\r\n\r\nd") +
      sized("/5", "e") + chunked("/6", "f") + get("/7")
    await fc.assert(
      fc.asyncProperty(cutsOf(sent), async (pieces) => {
        const client = open().setNoDelay(true)
        const replies = text(client)
        for (const piece of pieces) {
          client.write(piece)
          await new Promise(setImmediate)
        }
        client.end()
        const bodies = (await replies).match(/\[[^\]]*\]/g)
        assert.deepStrictEqual(bodies, [
          "[/1 ]",
          "[/2 a\r\n\r\nb\r\n\r\n]",
          "[/3 ]",
          "[/4 c\r\n\r\nd]",
          "[/5 e]",
          "[/6 f]",
          "[/7 ]"
        ])
      }),
      { numRuns: runs(20) }
    )
  })

  it("stay on the socket beyond the held bytes", async () => {
    serve = () => {}
    const client = open()
    const many = get("/1").repeat(2000)
    client.write(many)
    await untilHolds(() => paths().length === 1)
    // More than both systems buffer for a socket that is not read.
    while (client.write(many)) await others()
    assert.lengthOf(paths(), 1)
  })
})

describe("pipelining connections", () => {
  it("are served in order, a few in each turn of the event loop", async () => {
    const turns = new Turns(8)
    const served: Array<number> = []
    const perTurn: Array<number> = []
    for (let i = 0; i < 20; i++) {
      const serveOne = () => served.push(i)
      turns.join(serveOne)
      turns.join(serveOne)
    }
    while (served.length < 20) {
      const before = served.length
      await new Promise(setImmediate)
      perTurn.push(served.length - before)
    }
    assert.deepStrictEqual(served, Array.from({ length: 20 }, (_, i) => i))
    assert.deepStrictEqual(perTurn.filter((count) => count > 0), [8, 8, 4])
  })

  it("do not block other clients", async () => {
    serve = (_, response) => response.end("ok")
    const many = 500
    for (let i = 0; i < 20; i++) open().end(get("/1").repeat(many)).resume()
    await untilHolds(() => paths().length >= 20)
    await others()
    assert.isBelow(paths().length, 20 * many / 10)
  })
})

describe("malformed input behind a request", () => {
  it("does not replace the reply to that request", async () => {
    serve = () => {}
    const client = open()
    const reply = text(client)
    client.write(`${get("/1")}this is no request\r\n\r\n`)
    await untilHolds(() => paths().length === 1)
    await others()
    answer(0, "the whole reply")
    const [first, second] = (await reply).split("the whole reply")
    assert.match(first!, /^HTTP\/1\.1 200 OK\r\n/)
    assert.match(second!, /^HTTP\/1\.1 400 /)
  })
})

describe("a client that closes its sending half", () => {
  it("gets the whole reply, however late", async () => {
    serve = () => {}
    const client = open()
    const reply = text(client)
    client.end(get("/1"))
    await untilHolds(() => paths().length === 1)
    // The server has sent all early bytes.
    await untilHolds(() => client.bytesRead >= 3)
    answer(0, "late")
    assert.match(await reply, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nlate$/)
  })

  it("gets all chunks of a reply, however late", async () => {
    serve = (_, response) => response.write("first ")
    const client = open()
    const reply = text(client)
    client.end(get("/1"))
    await untilHolds(() => client.bytesRead > 0)
    const sent = client.bytesRead
    await untilHolds(() => client.bytesRead >= sent + 3)
    const { response } = asked[0]!
    response.end("second")
    const [, body] = (await reply).split(/\r\n\r\n([^]*)/)
    // Leading zeros do not change a length.
    assert.match(body ?? "", /^6\r\nfirst \r\n0{1,9}6\r\nsecond\r\n0\r\n\r\n$/)
  })

  it("and then disconnects is noticed, before and during a reply", async () => {
    for (const begins of [false, true]) {
      serve = (_, response) => void (begins && response.write("first"))
      const client = open()
      client.resume()
      client.write(get("/1"))
      await untilHolds(() => begins ? client.bytesRead > 0 : paths().length === 1)
      const { response } = asked.at(-1)!
      const closed = once(response, "close")
      client.destroy()
      await closed
      assert.isFalse(response.writableEnded)
    }
  })
})
