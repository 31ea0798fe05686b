/** Forms with files, sound and pictures: as they are, streamed, and bounded in what the gateway holds. */
import { afterAll, afterEach, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { execFile } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, request as httpRequest, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { buffer } from "node:stream/consumers"
import { promisify } from "node:util"
import { toFile } from "openai"
import type { RawConfig } from "../../../src/config/json.ts"
import { CurrentBufferedBytes } from "../../../src/config/limits.ts"
import { Lifecycle } from "../../../src/server/Lifecycle.ts"
import { sized } from "../../support/effort.ts"
import { businessKey, type GatewayOptions, type RunningGateway } from "../../support/gateway.ts"
import { makeMovedClock } from "../../support/movedClock.ts"
import { frames, json, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"
import { pageText, snippetsOf } from "../../support/snippets.ts"
import { untilHolds } from "../../support/until.ts"
import { clientOf, errorOf, lastRecord, post, startOver } from "./support.ts"

let server: OpenAiServer
let gateway: RunningGateway
beforeAll(async () => {
  server = await startOpenAiServer()
})
afterAll(() => server.stop())
beforeEach(async () => {
  gateway = await startOver(server)
})
afterEach(() => gateway.stop())

const held = () => Context.get(gateway.services, CurrentBufferedBytes).used

/** A form as the server received it. */
const formOf = ({ bytes, headers }: OpenAiServer["requests"][number]) =>
  new Response(new Uint8Array(bytes), { headers: { "content-type": headers["content-type"] ?? "" } }).formData()

const textOf = (value: File | string | null) => value instanceof File ? value.text() : value

const boundary = "----cut"
const part = (name: string, value: string, rest = "") =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${rest}\r\n\r\n${value}\r\n`
const fileStart = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`
const formEnd = `\r\n--${boundary}--\r\n`
const formType = { "content-type": `multipart/form-data; boundary=${boundary}` }

describe("forms of the vendor's client", () => {
  it("transcribe and translate speech", async () => {
    server.answer(() => json(200, { text: "hello", usage: { type: "tokens", input_tokens: 9, output_tokens: 2 } }))
    const file = await toFile(Buffer.from("RIFF"), "a.wav")
    const { audio } = clientOf(gateway)
    assert.strictEqual((await audio.transcriptions.create({ file, model: "ears", language: "en" })).text, "hello")
    assert.strictEqual((await audio.translations.create({ file, model: "ears" })).text, "hello")
    const [first, second] = server.requests
    assert.deepStrictEqual([first?.path, second?.path], ["/v1/audio/transcriptions", "/v1/audio/translations"])
    const form = await formOf(first!)
    assert.deepStrictEqual(
      [form.get("model"), form.get("language"), await textOf(form.get("file"))],
      ["their-ears", "en", "RIFF"]
    )
    assert.deepInclude(await lastRecord(gateway), {
      style: "carried",
      outcome: "ok",
      usage: { prompt_tokens: 9, completion_tokens: 2, reasoning_tokens: 0 }
    })
  })

  it("edit pictures of a model of one's own", async () => {
    server.answer(() => json(200, { created: 1, data: [{ b64_json: "aGk=" }] }))
    const image = await toFile(Buffer.from("PNG"), "a.png", { type: "image/png" })
    const reply = await clientOf(gateway).images.edit({ model: "painter", image, prompt: "a gate" })
    assert.strictEqual(reply.data?.[0]?.b64_json, "aGk=")
    const form = await formOf(server.requests[0]!)
    assert.deepStrictEqual([form.get("model"), form.get("prompt")], ["their-painter", "a gate"])
  })

  it("stream a transcription's events", async () => {
    const done = {
      type: "transcript.text.done",
      text: "hi",
      usage: { type: "tokens", input_tokens: 4, output_tokens: 1 }
    }
    server.answer(() => ({ pieces: [frames({ type: "transcript.text.delta", delta: "hi" }, done)] }))
    const file = await toFile(Buffer.from("RIFF"), "a.wav")
    const stream = await clientOf(gateway).audio.transcriptions.create({ file, model: "ears", stream: true })
    const types: Array<string> = []
    for await (const { type } of stream) types.push(type)
    assert.deepStrictEqual(types, ["transcript.text.delta", "transcript.text.done"])
  })

  it("fail over while they are held whole", async () => {
    server.answer((_, index) => index === 0 ? json(429, { error: { message: "later" } }) : json(200, { text: "ok" }))
    const file = await toFile(Buffer.alloc(200_000, "x"), "a.wav")
    const reply = await clientOf(gateway).audio.transcriptions.create({ file, model: "ears" })
    assert.strictEqual(reply.text, "ok")
    const [first, second] = await Promise.all(server.requests.map(formOf))
    assert.strictEqual(await textOf(first!.get("file")), await textOf(second!.get("file")))
  })
})

describe("other requests of the vendor's client", () => {
  it("classify, also by the vendor's own model if the request names none", async () => {
    const result = { id: "modr-1", model: "their-moderator", results: [{ flagged: false }] }
    server.answer(() => json(200, result))
    const { moderations } = clientOf(gateway)
    const reply = await moderations.create({ model: "moderator", input: "hello" })
    assert.deepStrictEqual([reply.model, reply.results[0]?.flagged], ["moderator", false])
    await moderations.create({ input: "hello" })
    assert.strictEqual((await post(gateway, "/v1/moderations", " { } ")).status, 200)
    assert.deepStrictEqual(server.requests.map(({ body }) => body), [
      { model: "their-moderator", input: "hello" },
      { model: "omni-moderation-latest", input: "hello" },
      { model: "omni-moderation-latest" }
    ])
    for (const model of [null, 7, "", ["moderator"]]) {
      const response = await post(gateway, "/v1/moderations", JSON.stringify({ model, input: "hello" }))
      assert.strictEqual(response.status, 400)
      assert.deepInclude((await response.json() as { error: object }).error, { param: "model" })
    }
  })

  it("make pictures, larger than the gateway holds", async () => {
    const picture = "A".repeat(3 * 1024 * 1024)
    server.answer(() =>
      json(200, { data: [{ b64_json: picture }], usage: { input_tokens: 3, output_tokens: 900, total_tokens: 903 } })
    )
    const reply = await clientOf(gateway).images.generate({ model: "painter", prompt: "a gate" })
    assert.strictEqual(reply.data?.[0]?.b64_json, picture)
    assert.deepInclude(await lastRecord(gateway), {
      usage: { prompt_tokens: 3, completion_tokens: 900, reasoning_tokens: 0 }
    })
  })

  it("stream pictures, which arrive as they are", async () => {
    const events = [
      { type: "image_generation.partial_image", b64_json: "A".repeat(300_000) },
      { type: "image_generation.completed", b64_json: "B", usage: { input_tokens: 3, output_tokens: 4 } }
    ]
    server.answer(() => ({ pieces: [frames(...events)] }))
    const stream = await clientOf(gateway).images.generate({ model: "painter", prompt: "a gate", stream: true })
    const seen: Array<number> = []
    for await (const { b64_json } of stream) seen.push(b64_json.length)
    assert.deepStrictEqual(seen, [300_000, 1])
  })

  it("speak, byte for byte", async () => {
    const sound = Buffer.from(Array.from({ length: 300_000 }, (_, i) => i % 251))
    server.answer(() => ({ headers: { "content-type": "audio/mpeg" }, pieces: [sound] }))
    const reply = await clientOf(gateway).audio.speech.create({ model: "speaker", input: "hello", voice: "alloy" })
    assert.strictEqual(reply.headers.get("content-type"), "audio/mpeg")
    assert.isTrue(Buffer.from(await reply.arrayBuffer()).equals(sound))
    assert.deepStrictEqual(server.requests[0]?.body, { model: "their-speaker", input: "hello", voice: "alloy" })
    assert.deepInclude(await lastRecord(gateway), { outcome: "ok", model: "speaker" })
  })

  it("rank and score", async () => {
    server.answer(() => json(200, { model: "their-ranker", results: [{ index: 0, relevance_score: 0.5 }] }))
    for (
      const [path, body] of [["rerank", { query: "q", documents: ["d"] }], ["score", {
        text_1: "a",
        text_2: "b"
      }]] as const
    ) {
      const response = await post(gateway, `/v1/${path}`, JSON.stringify({ model: "ranker", ...body }))
      assert.deepInclude(await response.json(), { model: "ranker" })
    }
    assert.deepStrictEqual(server.requests.map(({ path }) => path), ["/v1/rerank", "/v1/score"])
  })
})

describe("a reply of sound that fails", () => {
  it.each([["with", { "content-length": "5000" }], ["without", {}]] as const)(
    "breaks off %s a stated length",
    async (_, headers) => {
      server.answer(() => ({
        headers: { "content-type": "audio/mpeg", ...headers },
        pieces: [Buffer.alloc(2_000)],
        after: "reset"
      }))
      const response = await post(gateway, "/v1/audio/speech", `{"model":"speaker","input":"x","voice":"v"}`)
      assert.strictEqual(response.status, 200)
      assert.strictEqual(await response.arrayBuffer().then(() => "whole", () => "broken"), "broken")
      assert.deepInclude(await lastRecord(gateway), { outcome: "failed", error: "upstream_error" })
    }
  )
})

describe("a form", () => {
  it.each([
    ["without a model", part("language", "en") + part("file", "x"), "model: is required"],
    ["with two models", part("model", "ears") + part("model", "speaker"), "more than once"],
    ["with a name that parsers read differently", part("model", "ears") + part("mod\\el", "speaker"), "plain name"],
    ["with a folded header", part("model", "ears", ";\r\n x=\"y\""), "plain name"],
    ["with a line end missing", `--${boundary}x\r\n`, "line end"],
    ["without an end", `${part("model", "ears")}--other`, "last boundary", ""]
  ])("%s is refused before the server sees it", async (_, body, message, end = formEnd) => {
    server.answer(() => json(200, { text: "no" }))
    const response = await post(gateway, "/v1/audio/transcriptions", body + end, formType)
    const { error } = await response.json() as { error: { message: string } }
    assert.strictEqual(response.status, 400)
    assert.include(error.message, message)
    assert.isEmpty(server.requests)
  })

  it("is refused where only JSON is read, if it is encoded, and beyond limits.body_bytes", async () => {
    const form = part("model", "text") + formEnd
    assert.strictEqual((await post(gateway, "/v1/completions", form, formType)).status, 415)
    const packed = { ...formType, "content-encoding": "compress" }
    assert.strictEqual((await post(gateway, "/v1/audio/transcriptions", form, packed)).status, 415)
    await gateway.stop()
    gateway = await startOver(server, { limits: { body_bytes: 100_000 } })
    server.answer(() => json(200, { text: "no" }))
    const file = await toFile(Buffer.alloc(200_000, "x"), "a.wav")
    const error = await errorOf(clientOf(gateway).audio.transcriptions.create({ file, model: "ears" }))
    assert.deepStrictEqual([error.status, error.code], [413, "request_too_large"])
  })

  it("with a second model behind the file ends with an error of the caller, and blames no account", async () => {
    const big = "x".repeat(100_000)
    const response = await post(
      gateway,
      "/v1/audio/transcriptions",
      `${part("model", "ears")}${part("file", big, "; filename=\"a.wav\"")}${part("model", "speaker")}${formEnd}`,
      formType
    )
    const { error } = await response.json() as { error: { param: string } }
    assert.deepStrictEqual([response.status, error.param], [400, "model"])
    server.answer(() => json(200, { text: "still there" }))
    const file = await toFile(Buffer.from("RIFF"), "a.wav")
    assert.strictEqual(
      (await clientOf(gateway).audio.transcriptions.create({ file, model: "ears" })).text,
      "still there"
    )
  })

  it("is sent once after its first bytes have left", async () => {
    server.answer(() => json(429, { error: { message: "later" } }))
    const big = part("file", "x".repeat(100_000), "; filename=\"a.wav\"")
    const response = await post(gateway, "/v1/audio/transcriptions", part("model", "ears") + big + formEnd, formType)
    assert.strictEqual(response.status, 429)
    assert.lengthOf(server.requests, 1)
  })
})

describe("the recipe of the documents", () => {
  it("ranks and transcribes", async () => {
    const [recipe] = snippetsOf(pageText("docs/servers/pass-through.md"), "sh carried")
    await gateway.stop()
    gateway = await startOver(server, {}, { models: { ranker: "their-ranker", "whisper-1": "their-ears" } })
    server.answer(() => json(200, { text: "done" }))
    const folder = mkdtempSync(path.join(tmpdir(), "carried-"))
    writeFileSync(path.join(folder, "speech.wav"), "RIFF")
    const text = recipe!.text.replaceAll("http://127.0.0.1:5001", gateway.url)
    const { stdout } = await promisify(execFile)("sh", ["-ec", text], {
      cwd: folder,
      env: { PATH: process.env["PATH"], GATEWAY_KEY: businessKey }
    })
    rmSync(folder, { recursive: true })
    assert.strictEqual(stdout, `{"text":"done"}`.repeat(2))
    const [ranked, heard] = server.requests
    assert.strictEqual(ranked?.body["model"], "their-ranker")
    assert.strictEqual((await formOf(heard!)).get("model"), "their-ears")
  })
})

/** Starts the gateway over a server that a test writes itself; returns the function that stops the server. */
const listen = async (raw: Server, config: RawConfig = {}, options: GatewayOptions = {}) => {
  await new Promise<void>((resolve) => raw.listen(0, "127.0.0.1", resolve))
  await gateway.stop()
  const baseUrl = `http://127.0.0.1:${(raw.address() as AddressInfo).port}/v1`
  gateway = await startOver({ baseUrl }, config, {}, options)
  return () => {
    raw.closeAllConnections()
    raw.close()
  }
}

const serve = (handle: (request: IncomingMessage, response: ServerResponse) => void) => listen(createServer(handle))

const MiB = 1024 * 1024
const mostHeld = 4 * MiB

/** Sends the head of a form and the beginning of its file; the rest does not come. */
const beginForm = () => {
  const request = httpRequest(`${gateway.url}/v1/audio/transcriptions`, {
    method: "POST",
    headers: { ...formType, authorization: `Bearer ${businessKey}` }
  })
  request.on("error", () => {})
  request.write(part("model", "ears") + fileStart + "x".repeat(100_000))
  return request
}

describe("a form that is still arriving", () => {
  it("gets the answer of a server that does not wait for its end", async () => {
    const stop = await serve((request, response) => {
      request.resume()
      response.writeHead(429, { "content-type": "application/json" }).end(`{"error":{"message":"not now"}}`)
    })
    const request = beginForm()
    const [response] = await once(request, "response") as [IncomingMessage]
    assert.strictEqual(response.statusCode, 429)
    request.destroy()
    stop()
  })

  it("stops at the server when its client leaves", async () => {
    const left = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const stop = await serve((request) => {
      request.once("data", () => begun.resolve())
      request.on("error", () => left.resolve())
    })
    const request = beginForm()
    await begun.promise
    request.destroy()
    await left.promise
    const active = () => Context.get(gateway.services, Lifecycle).active()
    await untilHolds(() => active() === 0 && held() === 0)
    stop()
  })

  it("is refused with 408 when nothing more comes for limits.body_seconds", async () => {
    const clock = makeMovedClock({ still: true })
    const begun = Promise.withResolvers<void>()
    const raw = createServer((request, response) => {
      request.on("error", () => {})
      request.once("data", () => begun.resolve())
      if (request.method === "GET") response.writeHead(404).end()
    })
    const close = await listen(raw, { limits: { body_seconds: 5 } }, { clock })
    const request = beginForm()
    const answered = once(request, "response") as Promise<[IncomingMessage]>
    await begun.promise
    await untilHolds(() => clock.sleeping().includes(5_000))
    clock.move(5_000)
    const [response] = await answered
    assert.strictEqual(response.statusCode, 408)
    request.destroy()
    close()
  })
})

/** Writes so many blocks, as fast as they are taken. */
const write = async (to: NodeJS.WritableStream, blocks: number, block: Uint8Array) => {
  for (let i = 0; i < blocks; i++) if (!to.write(block)) await once(to, "drain")
}

describe("what the gateway holds", () => {
  it("of a transcription of 20 MB is a small part, where the model comes before the file", async () => {
    let most = 0
    const hash = createHash("sha256")
    const stop = await serve((request, response) => {
      request.on("data", (bytes: Buffer) => {
        most = Math.max(most, held())
        hash.update(bytes)
        request.pause()
        setImmediate(() => request.resume())
      })
      request.on("end", () => {
        response.writeHead(200, { "content-type": "application/json" }).end(
          JSON.stringify({ text: "long", length: request.headers["content-length"] })
        )
      })
    })
    const block = Buffer.alloc(64 * 1024, "sound")
    const blocks = 20 * MiB / block.length
    const before = part("model", "ears") + fileStart
    const request = httpRequest(`${gateway.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: {
        ...formType,
        authorization: `Bearer ${businessKey}`,
        "content-length": before.length + blocks * block.length + formEnd.length
      }
    })
    const answered = once(request, "response") as Promise<[IncomingMessage]>
    request.write(before)
    await write(request, blocks, block)
    request.end(formEnd)
    const reply = JSON.parse((await buffer((await answered)[0])).toString()) as { text: string; length: string }
    const expected = createHash("sha256").update(part("model", "their-ears") + fileStart)
    for (let i = 0; i < blocks; i++) expected.update(block)
    assert.strictEqual(hash.digest("hex"), expected.update(formEnd).digest("hex"))
    const length = before.length + "their-".length + blocks * block.length + formEnd.length
    assert.deepStrictEqual(reply, { text: "long", length: String(length) })
    assert.isAbove(most, 0)
    assert.isBelow(most, mostHeld)
    stop()
  })

  it("of speech of many megabytes is a small part, including for a client that waits", async () => {
    const block = Buffer.alloc(256 * 1024, "sound")
    const size = sized(200) * MiB
    const blocks = size / block.length
    const stop = await serve((request, response) => {
      request.resume()
      response.writeHead(200, { "content-type": "audio/pcm" })
      void write(response, blocks, block).then(() => response.end())
    })
    const response = await post(gateway, "/v1/audio/speech", `{"model":"speaker","input":"x","voice":"v"}`)
    const reader = response.body!.getReader()
    let [bytes, most] = [0, 0]
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      bytes += value.length
      most = Math.max(most, held())
    }
    assert.strictEqual(bytes, size)
    assert.isBelow(most, mostHeld)
    stop()
  })
})

describe("a client that does not read", () => {
  it("is left after the client timeout, and the server is stopped", async () => {
    const clock = makeMovedClock({ still: true })
    await gateway.stop()
    gateway = await startOver(server, {}, { timeouts: { client: 1 } }, { clock })
    server.answer(() => ({
      headers: { "content-type": "audio/mpeg" },
      pieces: Array.from({ length: 64 }, () => Buffer.alloc(MiB)),
      after: "hang"
    }))
    const request = httpRequest(`${gateway.url}/v1/audio/speech`, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" }
    })
    request.on("error", () => {})
    request.end(`{"model":"speaker","input":"x","voice":"v"}`)
    await once(request, "response")
    const active = () => Context.get(gateway.services, Lifecycle).active()
    while (active() > 0) {
      clock.move(100)
      await new Promise(setImmediate)
    }
    await server.until((requests) => requests[0]?.outcome === "aborted")
    request.destroy()
  })
})
