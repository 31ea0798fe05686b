/** The ring of records under generated interleavings: its bounds, and paging while it changes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Redacted from "effect/Redacted"
import * as fc from "fast-check"
import { makeRequestStats, type RequestStats } from "../../src/completion/RequestStats.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { plainConversation, Text } from "../../src/domain/Conversation.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { Captures } from "../../src/recordings/Captures.ts"
import type { RequestRecord } from "../../src/recordings/RequestRecord.ts"
import { Requests } from "../../src/recordings/Requests.ts"
import { pageOf } from "../../src/recordings/search.ts"
import type { RoundRecorder } from "../../src/upstream/Upstream.ts"
import { runs } from "../support/effort.ts"

const MiB = 1024 * 1024

type Op =
  | { readonly _tag: "Begin" }
  | { readonly _tag: "Receive" | "Reply" | "Upstream" | "Talk"; readonly nth: number; readonly size: number }
  | { readonly _tag: "Answer" | "Round" | "CloseRound" | "End"; readonly nth: number }
  | { readonly _tag: "Look"; readonly reader: number }
  | { readonly _tag: "Clear" }

const nth = fc.nat(20)
const size = fc.oneof(fc.nat(100), fc.nat(90_000))
const tagged = <const T extends Op["_tag"]>(_tag: T) => fc.constant(_tag)

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ _tag: tagged("Begin") }) },
  { weight: 6, arbitrary: fc.record({ _tag: fc.constantFrom("Receive", "Talk"), nth, size }) },
  { weight: 20, arbitrary: fc.record({ _tag: fc.constantFrom("Reply", "Upstream"), nth, size }) },
  { weight: 16, arbitrary: fc.record({ _tag: fc.constantFrom("Answer", "Round", "CloseRound"), nth }) },
  { weight: 6, arbitrary: fc.record({ _tag: tagged("End"), nth }) },
  { weight: 6, arbitrary: fc.record({ _tag: tagged("Look"), reader: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ _tag: tagged("Clear") }) }
)

interface Running {
  readonly record: RequestRecord
  readonly stats: RequestStats
  readonly rounds: Array<RoundRecorder>
}

const makeRing = (requests: RawConfig, captures: RawConfig = { enabled: false }) =>
  Effect.gen(function*() {
    return { requests: yield* Requests, captures: yield* Captures, store: yield* ConfigStore }
  }).pipe(
    Effect.provide(
      Layer.mergeAll(Requests.layer, Captures.layer).pipe(
        Layer.provideMerge(ConfigStore.layerJson({ requests, captures }))
      )
    ),
    Effect.runSync
  )

const begin = ({ requests }: ReturnType<typeof makeRing>, id = "r", key = "direct"): Running | undefined => {
  const stats = makeRequestStats(id, 0)
  const record = requests.begin({
    facts: stats,
    key,
    head: () => ({ method: "POST", path: "/v1/chat/completions", headers: { "user-agent": "test" } }),
    secret: "a-caller-token"
  })
  return record === undefined ? undefined : { record, stats, rounds: [] }
}

/** Who serves a round. */
const by = (identifier: string) => ({ upstream: "default", identifier })

const openRound = ({ captures }: ReturnType<typeof makeRing>, { record, rounds }: Running) => {
  const round = captures.recorder(by("a@x.org"), "r", record)!.round({
    label: "completion",
    protocol: "session",
    url: "http://up/x",
    requestBody: "{}",
    sessionId: "s",
    secret: Redacted.make("an-account-token"),
    secrets: [Redacted.make("an-upstream-header")]
  })
  round.opened(200, "text/event-stream")
  rounds.push(round)
  return round
}

const everything = { keyName: () => undefined, secrets: [] }

/** The bytes that a record actually holds. */
const heldBy = (record: RequestRecord): number =>
  Buffer.byteLength(record.body.text) + (record.reply?.body.bytes.length ?? 0) +
  record.rounds.reduce((sum, { reply, requestBody }) => sum + requestBody.length + reply.bytes.length, 0)

/** A finished request. */
const ended = (ring: ReturnType<typeof makeRing>, id: string, key: string, status: number, size = 10) => {
  const { record, stats } = begin(ring, id, key)!
  record.received("x".repeat(size))
  stats.status = status
  stats.finish = "stop"
  if (status >= 400) stats.error = "authentication_failed"
  record.ended()
  return record
}

describe("the ring of records", () => {
  it("knows what else was sent that is secret", () => {
    const ring = makeRing({})
    const running = begin(ring)!
    openRound(ring, running)
    assert.includeMembers([...running.record.secrets], ["an-account-token", "an-upstream-header"])
  })

  it("keeps the records and bodies of others, however many requests are refused", () => {
    const ring = makeRing({ limit: 1_000, max_body_bytes: 10_000, max_total_bytes: MiB })
    for (let n = 0; n < 1_000; n++) ended(ring, `own-${n}`, "a-key", 200)
    for (let n = 0; n < 1_100; n++) ended(ring, `junk-${n}`, "direct", [401, 400, 503][n % 3]!, 10_000)
    const records = ring.requests.older(undefined)
    assert.lengthOf(records, 1_000)
    const kept = records.filter(({ key }) => key === "a-key")
    // One place belongs to the running request.
    assert.deepStrictEqual([kept.length, kept.at(-1)?.facts.id], [749, "own-251"])
    assert.isTrue(kept.every(({ bodiesKept }) => bodiesKept))
    assert.strictEqual(records[0]?.facts.id, "junk-1099")
    // Later authenticated requests take the rest of the ring.
    for (let n = 0; n < 2_000; n++) ended(ring, `later-${n}`, "a-key", 200)
    const after = ring.requests.older(undefined)
    assert.deepStrictEqual([after.length, after.filter(({ key }) => key === "direct").length], [1_000, 250])
    ring.requests.clear()
    assert.strictEqual(ring.requests.status().kept, 0)
  })

  it("keeps its bounds under random use, and a paged list neither skips nor repeats records", () => {
    const limits = fc.record({
      limit: fc.integer({ min: 1, max: 12 }),
      max_body_bytes: fc.integer({ min: 1, max: 200_000 }),
      captured: fc.boolean()
    })
    fc.assert(
      fc.property(limits, fc.array(op, { maxLength: 120, size: "max" }), ({ captured, ...limits }, ops) => {
        const ring = makeRing({ ...limits, max_total_bytes: MiB }, { enabled: captured, limit: 3 })
        const { requests } = ring
        const running: Array<Running> = []
        const records = new Set<RequestRecord>()
        const readers = new Map<
          number,
          { before: number | undefined; seen: Array<number>; there: ReadonlyArray<number> }
        >()
        const numbers = () => requests.older(undefined).map(({ number }) => number)
        for (const op of ops) {
          const chosen = "nth" in op ? running[op.nth % running.length] : undefined
          switch (op._tag) {
            case "Begin": {
              const begun = begin(ring)!
              running.push(begun)
              records.add(begun.record)
              break
            }
            case "Receive":
              chosen?.record.received("x".repeat(op.size))
              break
            case "Talk":
              chosen?.record.decoded({
                ...plainConversation,
                turns: [{ role: "user", parts: [Text("y".repeat(op.size))] }]
              })
              break
            case "Answer":
              chosen?.record.answered(200, { "content-type": "text/event-stream" }, undefined)
              break
            case "Reply":
              chosen?.record.sent(new Uint8Array(op.size))
              break
            case "Round":
              if (chosen !== undefined) openRound(ring, chosen)
              break
            case "Upstream":
              chosen?.rounds.at(-1)?.bytes(new Uint8Array(op.size))
              break
            case "CloseRound":
              chosen?.rounds.pop()?.closed()
              break
            case "End":
              if (chosen === undefined) break
              for (const round of chosen.rounds.splice(0)) round.closed()
              chosen.record.ended()
              running.splice(running.indexOf(chosen), 1)
              break
            case "Look": {
              const reader = readers.get(op.reader) ?? { before: undefined, seen: [], there: numbers() }
              const { next, records } = runSync(pageOf(requests.older(reader.before), 2, {}, everything))
              reader.seen.push(...records.map(({ number }) => number))
              reader.before = next
              readers.set(op.reader, reader)
              // Newest first, without duplicates.
              for (let i = 1; i < reader.seen.length; i++) assert.isBelow(reader.seen[i]!, reader.seen[i - 1]!)
              if (next === undefined) {
                const left = new Set(numbers())
                for (const number of reader.there) if (left.has(number)) assert.include(reader.seen, number)
                readers.delete(op.reader)
              }
              break
            }
            case "Clear":
              requests.clear()
              assert.isTrue(
                requests.older(undefined).every(({ outcome }) => outcome === "open")
              )
              break
          }
          const { bytes, kept } = requests.status()
          assert.isAtMost(kept, limits.limit)
          assert.isAtMost(bytes, MiB)
          const held = [...records].reduce((sum, record) => sum + heldBy(record), 0)
          assert.isAtMost(held, bytes)
          for (const record of records) {
            assert.isAtMost(record.body.text.length, limits.max_body_bytes)
            assert.isAtMost(record.reply?.body.bytes.length ?? 0, limits.max_body_bytes)
          }
        }
        for (const { record, rounds } of running) {
          for (const round of rounds) round.closed()
          record.ended()
        }
        requests.clear()
        assert.deepStrictEqual(requests.status(), { kept: 0, bytes: 0 })
      }),
      { numRuns: runs(150) }
    )
  })

  it("drops the bodies of the oldest finished records first, then stops recording running requests", () => {
    const ring = makeRing({ limit: 50, max_body_bytes: MiB, max_total_bytes: MiB })
    const [first, second, third] = [begin(ring)!, begin(ring)!, begin(ring)!]
    for (const { record } of [first, second]) {
      record.received("x".repeat(300_000))
      record.ended()
    }
    third.record.received("y".repeat(600_000))
    assert.deepEqual([first, second, third].map(({ record }) => record.bodiesKept), [false, true, true])
    third.record.answered(200, {}, Buffer.alloc(600_000))
    assert.deepEqual([first, second, third].map(({ record }) => record.bodiesKept), [false, false, true])
    assert.deepInclude(third.record.body, { truncated: false })
    assert.isTrue(third.record.reply?.body.truncated)
    third.record.sent(Buffer.alloc(1))
    assert.strictEqual(third.record.reply?.body.bytes.length, 0)
    assert.isAtMost(ring.requests.status().bytes, MiB)
  })

  it("shares the bytes of a round with its capture, each within its own limit", () => {
    const ring = makeRing({ max_body_bytes: 10 }, { enabled: true, max_body_bytes: 4 })
    const running = begin(ring)!
    const round = openRound(ring, running)
    for (const text of ["abc", "def", "ghi", "jkl"]) round.bytes(Buffer.from(text))
    const shown = () =>
      running.record.rounds.map(({ captureId, reply }) => [captureId, String(reply.bytes), reply.truncated])
    const [capture] = Effect.runSync(ring.captures.list)
    assert.deepEqual([String(capture!.bytes), capture!.truncated], ["abcd", true])
    assert.deepEqual(shown(), [[capture!.id, "abcdefghij", true]])
    round.closed()
    Effect.runSync(ring.captures.clear)
    assert.deepEqual(shown(), [[capture!.id, "abcdefghij", true]])
    assert.deepEqual(running.record.rounds[0]!.reply.marks.map(({ end }) => end), [3, 6, 9, 10])
  })

  it("shows vectors from the upstream as a success, and as cancelled if the client left before them", () => {
    const outcomes = (["done", "begun"] as const).map((progress) => {
      const running = begin(makeRing({}))!
      Object.assign(running.stats, { attempts: 1, status: 200, progress })
      running.record.ended()
      return running.record.outcome
    })
    assert.deepStrictEqual(outcomes, ["ok", "cancelled"])
  })

  it("records nothing while it is off, and only facts while bodies are off", () => {
    const off = makeRing({ enabled: false })
    assert.isUndefined(begin(off))
    assert.isUndefined(off.captures.recorder(by("a@x.org"), "r", undefined))
    const ring = makeRing({ bodies: false })
    const { record } = begin(ring)!
    record.received("text")
    record.answered(200, {}, Buffer.from("reply"))
    assert.deepEqual([record.bodiesKept, record.body.text, record.reply, ring.requests.status().bytes], [
      false,
      "",
      undefined,
      0
    ])
  })

  it("returns the changes since a known one, and reports a gap if changed records are gone", () => {
    const ring = makeRing({ limit: 2 })
    const heard: Array<number> = []
    const stop = ring.requests.listen(({ number }) => heard.push(number))
    const [first, second] = [begin(ring)!, begin(ring)!]
    const known = ring.requests.changes()
    first.record.leased("a@x.org")
    assert.deepEqual(ring.requests.since(known), { records: [first.record], gap: false })
    first.record.ended()
    assert.deepEqual(heard, [1, 2, 1, 1])
    begin(ring)
    assert.isTrue(ring.requests.since(known).gap)
    assert.isFalse(ring.requests.since(ring.requests.changes()).gap)
    assert.isTrue(ring.requests.since(ring.requests.changes() + 1).gap)
    stop()
    second.record.ended()
    assert.lengthOf(heard, 5)
  })
})
