/**
 * Client behaviour on a connection: pipelining, malformed input, unread bodies, and half-close.
 */
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { once } from "node:events"
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { Turns } from "../../src/config/clock/cooperative.ts"
import { type Connections, watchConnections } from "../../src/server/connections/Connections.ts"
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
let connections: Connections
/** Monotonic milliseconds of the connections. */
let now: number
/** What was read from the sockets, and what each call of node's parser was given. */
const reads: Array<Buffer> = []
const parsed: Array<Buffer> = []
/** The most bytes that all connections have held. */
let mostHeld: number

/** Counts what node's own listener, which the connections call, is given. */
const countInput = (socket: Socket) => {
  const name = "bound socketOnData"
  const parse = socket.listeners("data").find((listener) => listener.name === name) as (bytes: Buffer) => void
  const counting = {
    [name]: (bytes: Buffer) => {
      parsed.push(bytes)
      parse(bytes)
    }
  }
  socket.off("data", parse).on("data", (bytes: Buffer) => void reads.push(bytes)).on("data", counting[name]!)
}

beforeEach(async () => {
  asked.length = 0
  parsed.length = 0
  reads.length = 0
  now = 0
  mostHeld = 0
  server = createServer((request, response) => {
    asked.push({ request, response })
    serve(request, response)
  })
  server.on("connection", countInput)
  connections = watchConnections(server)
  let used = 0
  const sum = {
    get used() {
      return used
    },
    set used(bytes) {
      used = bytes
      mostHeld = Math.max(mostHeld, bytes)
    }
  }
  const most = () => Infinity
  connections.bound({ connections: most, bufferedBytes: most, sum, now: () => now, refused: () => {} })
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
      `1;some="extension;0"\r\n${body[0]}\r\n${body.length.toString(16)}\r\n${
        body.slice(1)
      }.\r\n00\r\nx-last: yes\r\n\r\n`
    const sent = get("/1") + sized("/2", "a\r\n\r\nb\r\n\r\n") + get("/3") + chunked("/4", "c\r\n\r\nd\r\n\r\n0123") +
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
          "[/4 c\r\n\r\nd\r\n\r\n0123.]",
          "[/5 e]",
          "[/6 f.]",
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

const KiB = 1024
const MiB = 1024 * KiB

const head = (path: string, ...fields: ReadonlyArray<string>) =>
  [`POST ${path} HTTP/1.1`, "host: gateway", ...fields, "", ""].join("\r\n")
const chunkedHead = (path: string) => head(path, "transfer-encoding: chunked")
const chunk = (data: string) => `${data.length.toString(16)}\r\n${data}\r\n`

/** Calls of the parser whose bytes were copied. */
const copies = () => {
  const memory = new Set(reads.map(({ buffer }) => buffer))
  return parsed.filter(({ buffer }) => !memory.has(buffer)).length
}

describe("the bytes of a request", () => {
  it("reach the parser in whole reads and without a copy, also blank lines in chunks", async () => {
    const body = "\r\n\r\n".repeat(MiB / 4)
    for (const sent of [chunkedHead("/1") + chunk(body) + "0\r\n\r\n", head("/1", `content-length: ${MiB}`) + body]) {
      reads.length = 0
      parsed.length = 0
      serve = (request, response) => void text(request).then((received) => response.end(String(received === body)))
      const client = open()
      const reply = text(client)
      client.end(sent)
      assert.match(await reply, /true/)
      // The end of the head divides a read.
      assert.isAtMost(parsed.length, reads.length + 1)
      assert.strictEqual(copies(), 0)
    }
  })

  it("in chunks of one byte are parsed in bounded calls, and held up to 16 KiB and one more read", async () => {
    const body = "a".repeat(64 * KiB)
    const sent = chunkedHead("/1") + chunk("a").repeat(body.length) + "0\r\n\r\n"
    serve = (request, response) => void text(request).then((received) => response.end(String(received === body)))
    const client = open()
    const reply = text(client)
    client.end(sent)
    assert.match(await reply, /true/)
    // A call has at most 128 chunks of 6 bytes.
    const longest = 128 * 6
    assert.isAtMost(Math.max(...parsed.map(({ length }) => length)), longest)
    assert.isAtMost(parsed.length, reads.length + 2 + sent.length / longest)
    assert.strictEqual(copies(), 0)
    assert.isAtMost(mostHeld, 16 * KiB + 64 * KiB)
  })

  it("do not include blank lines between requests: the parser sees an idle connection", async () => {
    serve = (_, response) => response.end("done")
    const client = open()
    client.write("\r\n".repeat(1000) + get("/1"))
    await untilHolds(() => client.bytesRead > 0)
    const calls = parsed.length
    client.write("\r\n".repeat(1000))
    await others()
    client.write(get("/2"))
    await untilHolds(() => paths().length === 2)
    const own = parsed.filter((bytes) => /\/[12] /.test(String(bytes)))
    assert.deepStrictEqual(own.map(String), [get("/1"), get("/2")])
    assert.isAtMost(parsed.length, calls + 2)
  })
})

describe("a reply to a request whose body has not arrived", () => {
  const refused = "refused"
  beforeEach(() => {
    serve = (_, response) => response.writeHead(401).end(refused)
  })

  it("closes the connection, and the client gets the whole reply", async () => {
    for (
      const begun of [chunkedHead("/1"), chunkedHead("/1") + "400000\r\nabc", head("/1", "content-length: 9") + "12"]
    ) {
      const client = open()
      const reply = text(client)
      client.write(begun)
      assert.include(await reply, refused)
      const { socket } = asked.at(-1)!.request
      client.end()
      await untilHolds(() => socket.destroyed)
    }
  })

  it("discards up to 1 MiB of the rest unparsed and unheld, so that the client may send it before it reads the reply", async () => {
    const client = open()
    client.write(chunkedHead("/1") + "1000000\r\n")
    await untilHolds(() => paths().length === 1)
    const { response } = asked[0]!
    if (!response.closed) await once(response, "close")
    const calls = parsed.length
    mostHeld = 0
    for (let i = 0; i < 8; i++) {
      if (!client.write("\r\n\r\n".repeat(16 * KiB))) await once(client, "drain")
    }
    const reply = text(client)
    client.end()
    assert.include(await reply, refused)
    assert.strictEqual(parsed.length, calls)
    assert.strictEqual(mostHeld, 0)
  })

  it("closes the connection of a client that sends on, 5 seconds later", async () => {
    const client = open()
    client.write(chunkedHead("/1"))
    const reply = text(client)
    assert.include(await reply, refused)
    const { request: { socket } } = asked[0]!
    now += 1
    connections.sweep(now, 60_000)
    now += 4_999
    connections.sweep(now, 60_000)
    assert.isFalse(socket.destroyed)
    now += 1
    connections.sweep(now, 60_000)
    assert.isTrue(socket.destroyed)
  })

  it("also closes the connection if the request expects something unknown", async () => {
    const client = open()
    const reply = text(client)
    client.write(head("/1", "expect: nothing", "transfer-encoding: chunked") + "4000000\r\n" + "\r\n\r\n".repeat(1000))
    assert.match(await reply, /^HTTP\/1\.1 417 /)
    assert.isAtMost(parsed.length, reads.length + 1)
  })
})

describe("a refused request whose body has arrived", () => {
  it("leaves the connection open", async () => {
    serve = (_, response) => response.writeHead(401).end("refused")
    const client = open()
    client.write(head("/1", "content-length: 2") + "{}" + chunkedHead("/2") + chunk("{}") + "0\r\n\r\n" + get("/3"))
    await untilHolds(() => paths().length === 3)
  })
})

describe("an upgraded socket", () => {
  it("is handed over with the bytes behind its request, and is not read before its new owner reads it", async () => {
    const upgraded = Promise.withResolvers<Socket>()
    server.on("upgrade", (_, socket) => upgraded.resolve(socket as Socket))
    const client = open()
    client.write("GET /1 HTTP/1.1\r\nhost: gateway\r\nconnection: upgrade\r\nupgrade: other\r\n\r\nfirst")
    const socket = await upgraded.promise
    client.end(" second")
    await others()
    assert.strictEqual(await text(socket), "first second")
    socket.destroy()
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
