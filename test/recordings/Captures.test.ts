import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Redacted from "effect/Redacted"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { type CapturedRound, responseText } from "../../src/recordings/CapturedRound.ts"
import { previews } from "../../src/recordings/capturePreview.ts"
import { Captures } from "../../src/recordings/Captures.ts"
import { blockSize } from "../../src/recordings/RecordedBytes.ts"
import type { Recorder, RoundRecorder } from "../../src/upstream/Upstream.ts"

const withCaptures = (captures: RawConfig) =>
  Effect.provide(Captures.layer.pipe(Layer.provideMerge(ConfigStore.layerJson({ captures }))))

const configure = (captures: RawConfig) =>
  Effect.flatMap(ConfigStore, (store) => store.update((raw) => Effect.succeed({ ...raw, captures })))

const bytesOf = (text: string): Uint8Array => Buffer.from(text)

interface Round {
  readonly session?: string
  readonly body?: string
  readonly token?: string
  readonly url?: string
}

/** Who serves a round. */
const by = (identifier?: string, upstream = "default") => ({ upstream, identifier })

const begin = (
  recorder: Recorder | undefined,
  { body = "{}", session = "s1", token, url = "http://up/x" }: Round = {}
) =>
  recorder!.round({
    label: "completion",
    protocol: "session",
    url,
    requestBody: body,
    sessionId: session,
    secret: token === undefined ? undefined : Redacted.make(token),
    secrets: [Redacted.make("header-secret")]
  })

const finish = (round: RoundRecorder, ...chunks: ReadonlyArray<string>) => {
  round.opened(200, "text/event-stream")
  for (const chunk of chunks) round.bytes(bytesOf(chunk))
  round.closed()
}

const texts = (rounds: ReadonlyArray<CapturedRound>) => rounds.map(responseText)

/** Bytes of memory that are allocated while a function runs. */
const memoryOf = (run: () => void): number => {
  const allocate = Buffer.allocUnsafeSlow
  let bytes = 0
  Buffer.allocUnsafeSlow = (size) => {
    bytes += size
    return allocate(size)
  }
  try {
    run()
  } finally {
    Buffer.allocUnsafeSlow = allocate
  }
  return bytes
}

describe("captures", () => {
  it.effect("keep a reply's bytes exactly, however its chunks are cut", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      const bytes = Uint8Array.from({ length: 700_000 }, (_, i) => (i * 31 + (i >> 8)) % 256)
      const round = begin(captures.recorder(by("a@example.com", "gpu"), "r1", undefined))
      round.opened(200, "text/event-stream")
      // Chunks are views of one reused buffer, as on a network.
      const shared = new Uint8Array(9_973)
      for (let at = 0; at < bytes.length; at += 9_973) {
        const piece = bytes.subarray(at, at + 9_973)
        shared.set(piece)
        round.bytes(shared.subarray(0, Math.min(100, piece.length)))
        if (piece.length > 100) round.bytes(shared.subarray(100, piece.length))
      }
      round.closed()
      const [captured] = yield* captures.list
      assert.strictEqual(Buffer.compare(captured!.bytes, bytes), 0)
      assert.deepInclude(captured, { status: 200, truncated: false, closed: true })
      assert.deepInclude(captured, { account: "a@example.com", upstream: "gpu" })
    }).pipe(withCaptures({})))

  it.effect("take memory by their bytes, not by the number of chunks", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      const round = begin(captures.recorder(by(), "r1", undefined))
      const chunk = new Uint8Array(1024 * 1024).subarray(0, 1)
      const taken = memoryOf(() => {
        for (let i = 0; i < 1_000_000; i++) round.bytes(chunk)
      })
      assert.isAtLeast(taken, 1_000_000)
      assert.isAtMost(taken, 1_000_000 + blockSize)
      assert.strictEqual((yield* captures.list)[0]!.bytes.length, 1_000_000)
    }).pipe(withCaptures({})))

  it.effect("truncate a reply at max_body_bytes and mark it as truncated", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      finish(begin(captures.recorder(by(), "r1", undefined)), "0123", "456789", "x")
      finish(begin(captures.recorder(by(), "r2", undefined)), "0123", "4567")
      const [fits, cut] = yield* captures.list
      assert.deepStrictEqual([responseText(cut!), cut!.truncated], ["01234567", true])
      assert.deepStrictEqual([responseText(fits!), fits!.truncated], ["01234567", false])
    }).pipe(withCaptures({ max_body_bytes: 8 })))

  it.effect("truncate a request body without splitting a character", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      begin(captures.recorder(by(), "r1", undefined), { body: "ab你好" })
      begin(captures.recorder(by(), "r2", undefined), { body: "abcdef你" })
      assert.deepStrictEqual((yield* captures.list).map((round) => round.requestBody), ["abcdef", "ab你好"])
    }).pipe(withCaptures({ max_body_bytes: 8 })))

  it.effect("keep the newest rounds up to the limit, newest first", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      for (const text of ["a", "b", "c", "d"]) {
        finish(begin(captures.recorder(by(), text, undefined), { session: text }), text)
      }
      assert.deepStrictEqual(texts(yield* captures.list), ["d", "c", "b"])
      yield* captures.clear
      assert.deepStrictEqual(yield* captures.list, [])
    }).pipe(withCaptures({ limit: 3 })))

  it.effect("never mix the bytes of rounds that reuse each other's memory", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      const contentOf = (i: number) => Buffer.alloc(10_000 + (i * 7_919) % 60_000, `${i} `)
      const running = begin(captures.recorder(by(), "running", undefined), { session: "running" })
      for (let i = 0; i < 40; i++) {
        const round = begin(captures.recorder(by(), `r${i}`, undefined), { session: `s${i}` })
        round.bytes(contentOf(i))
        running.bytes(contentOf(i))
        const [newest, before] = yield* captures.list
        assert.strictEqual(Buffer.compare(newest!.bytes, contentOf(i)), 0)
        if (i > 0) assert.strictEqual(Buffer.compare(before!.bytes, contentOf(i - 1)), 0)
      }
    }).pipe(withCaptures({ limit: 2 })))

  it.effect("record nothing while captures are off, and apply a changed configuration immediately", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      assert.isUndefined(captures.recorder(by(), "r1", undefined))
      yield* configure({ enabled: true, limit: 2, max_body_bytes: 4 })
      const running = begin(captures.recorder(by(), "r2", undefined), { session: "s2" })
      running.bytes(bytesOf("ab"))
      yield* configure({ enabled: true, limit: 2, max_body_bytes: 3 })
      running.bytes(bytesOf("cd"))
      assert.deepStrictEqual(texts(yield* captures.list), ["abc"])
      const second = begin(captures.recorder(by(), "r3", undefined), { session: "s3" })
      second.bytes(bytesOf("x"))
      yield* configure({ enabled: false, limit: 1 })
      second.bytes(bytesOf("y"))
      const left = yield* captures.list
      assert.deepStrictEqual(texts(left), ["x"])
      assert.isTrue(left[0]!.truncated)
      assert.isUndefined(captures.recorder(by(), "r4", undefined))
    }).pipe(withCaptures({ enabled: false })))

  it.effect("never show a credential, not even one that the upstream repeats", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      const token = "upstream-secret-1"
      const round = begin(captures.recorder(by(), "r1", undefined), {
        token,
        body: `{"prompt":"${token}"}`,
        url: `http://user:pass@up/path?key=${token}`
      })
      finish(round, "you sent upstream-", "secret-1, and upstream-secret-1 again with header-secret")
      const [captured] = yield* captures.list
      assert.strictEqual(
        responseText(captured!),
        "you sent *****************, and ***************** again with *************"
      )
      assert.strictEqual(captured!.url, "http://up/path")
      assert.notInclude(JSON.stringify(captured), token)
      assert.notInclude(Buffer.from(captured!.bytes).toString(), token)
    }).pipe(withCaptures({})))

  it.effect("form chains by upstream session, each of one request", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      const first = captures.recorder(by(), "r1", undefined)
      finish(begin(first, { session: "s1" }), "one")
      finish(begin(captures.recorder(by(), "r2", undefined), { session: "s2" }), "other")
      finish(begin(first, { session: "s1" }), "two")
      // A restarted provider reuses its first session id.
      finish(begin(captures.recorder(by(), "r3", undefined), { session: "s2" }), "again")
      const chains = yield* captures.query("", 10)
      assert.deepStrictEqual(chains.map(texts), [["again"], ["one", "two"], ["other"]])
      assert.deepStrictEqual(texts((yield* captures.chain("s1"))!), ["one", "two"])
      assert.deepStrictEqual(texts((yield* captures.chain("s2"))!), ["again"])
      assert.deepStrictEqual(texts((yield* captures.chainOf(chains[1]![0].id))!), ["one", "two"])
      assert.isUndefined(yield* captures.chain("s9"))
      assert.strictEqual((yield* captures.query("", 2)).length, 2)
    }).pipe(withCaptures({})))

  it.effect("are found by words of the request or of a reply that arrived in chunks", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      const reply = [
        "event: ready\ndata: {\"request_message_id\":1,\"response_message_id\":2}\n\n",
        "data: {\"v\":{\"response\":{\"message_id\":2,\"status\":\"WIP\",\"fragments\":[{\"id\":1,\"type\":\"RESPONSE\",\"content\":\"The Ka\"}]}}}\n\n",
        "data: {\"p\":\"response/fragments/-1/content\",\"o\":\"APPEND\",\"v\":\"ngaroo hops\"}\n\n",
        "data: {\"p\":\"response/status\",\"o\":\"SET\",\"v\":\"FINISHED\"}\n\n"
      ]
      const prompt = JSON.stringify({ prompt: "<|system|>\nBe brief\n<|user|>\nWhat does it do, 你好?\n<|assistant|>" })
      finish(begin(captures.recorder(by(), "r1", undefined), { body: prompt }), ...reply)
      finish(begin(captures.recorder(by(), "r2", undefined), { session: "s2", body: "not JSON" }), "plain words")
      const found = (text: string) =>
        Effect.map(captures.query(text, 10), (chains) => chains.map((chain) => chain[0].chainKey))
      assert.deepStrictEqual(yield* found("kangaroo"), ["s1"])
      assert.deepStrictEqual(yield* found("  HOPS   你好 "), ["s1"])
      assert.deepStrictEqual(yield* found("kangaroo words"), [])
      assert.deepStrictEqual(yield* found("words"), ["s2"])
      const [plain, chain] = yield* captures.query("", 10)
      assert.deepStrictEqual(previews(chain!), { request: "What does it do, 你好?", response: "The Kangaroo hops" })
      assert.deepStrictEqual(previews(plain!), { request: "not JSON", response: "plain words" })
    }).pipe(withCaptures({})))

  it.effect("of a followed request are kept, whatever else is captured, until the follower's scope ends", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      const inScope = Effect.gen(function*() {
        const recorded = yield* captures.follow("mine")
        assert.isUndefined(yield* recorded)
        const failed = begin(captures.recorder(by("a"), "mine", undefined), { session: "first try" })
        finish(failed, "no")
        const round = begin(captures.recorder(by("b"), "mine", undefined), { session: "second try" })
        round.opened(200, "text/event-stream")
        round.bytes(bytesOf("mi"))
        for (const other of ["x", "y", "z"]) {
          finish(begin(captures.recorder(by(), other, undefined), { session: other }), other)
        }
        round.bytes(bytesOf("ne"))
        round.closed()
        const chain = yield* recorded
        assert.deepStrictEqual(texts(chain!), ["mine"])
        assert.strictEqual(chain![0].account, "b")
      })
      yield* Effect.scoped(inScope)
      assert.deepStrictEqual(texts(yield* captures.list), ["z"])
      finish(begin(captures.recorder(by("b"), "mine", undefined), { session: "later" }), "later")
      assert.deepStrictEqual(texts(yield* captures.list), ["later"])
    }).pipe(withCaptures({ limit: 1 })))

  it.effect("that have left the ring keep no bytes of later chunks", () =>
    Effect.gen(function*() {
      const captures = yield* Captures
      const old = begin(captures.recorder(by(), "old", undefined), { session: "old" })
      finish(begin(captures.recorder(by(), "new", undefined), { session: "new" }), "new")
      const chunk = new Uint8Array(64 * 1024)
      const taken = memoryOf(() => {
        for (let i = 0; i < 64; i++) old.bytes(chunk)
      })
      assert.strictEqual(taken, 0)
      assert.deepStrictEqual(texts(yield* captures.list), ["new"])
    }).pipe(withCaptures({ limit: 1 })))
})
