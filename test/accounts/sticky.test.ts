import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Stickiness } from "../../src/accounts/Lease.ts"
import { type Answered, preferring, StickyConversations } from "../../src/accounts/sticky.ts"
import { conversationKey, isContinued } from "../../src/completion/stickiness.ts"
import { type Conversation, plainConversation, Text, type Turn } from "../../src/domain/Conversation.ts"
import { accounts, anywhere, buildPool, hold, managed } from "./support.ts"

const hour = 3_600_000
const turn = (key: string, isContinued = true): Stickiness => ({
  keys: [key],
  isContinued,
  prefersTarget: false,
  lifetimeOf: () => hour
})
const a: Answered = { upstream: "gpu", account: "a" }
const b: Answered = { upstream: "gpu", account: "b" }

const conversation = (...turns: ReadonlyArray<readonly [Turn["role"], string]>): Conversation => ({
  ...plainConversation,
  turns: turns.map(([role, text]) => ({ role, parts: [Text(text)] }))
})

describe("a conversation's key", () => {
  const first = conversation(["system", "be brief"], ["user", "hello"])
  const second = conversation(["system", "be brief"], ["user", "hello"], ["assistant", "hi"], ["user", "and now?"])

  it("belongs to all its turns, and to its caller alone", () => {
    assert.strictEqual(conversationKey("k", second), conversationKey("k", first))
    assert.notStrictEqual(conversationKey("other", first), conversationKey("k", first))
  })

  it("depends on the system text, the tools and the first user turn", () => {
    const others = [
      conversation(["system", "be long"], ["user", "hello"]),
      conversation(["system", "be brief"], ["user", "hello!"]),
      { ...first, tools: [{ name: "add" }] }
    ]
    for (const other of others) assert.notStrictEqual(conversationKey("k", other), conversationKey("k", first))
  })

  it("is looked up from the second turn on", () => {
    assert.deepStrictEqual([isContinued(first), isContinued(second)], [false, true])
  })
})

describe("sticky conversations", () => {
  it("count the turns that met their account again, and those that moved", () => {
    const sticky = new StickyConversations(() => 0)
    assert.isUndefined(sticky.lastOf(turn("1", false)))
    sticky.answered(turn("1", false), a, undefined)
    assert.deepInclude(sticky.lastOf(turn("1")), a)
    sticky.answered(turn("1"), a, a)
    sticky.answered(turn("1"), b, a)
    assert.deepInclude(sticky.lastOf(turn("1")), b)
    assert.deepStrictEqual(sticky.counts(), { hits: 1, moves: 1 })
  })

  it("are forgotten an hour after their last turn", () => {
    let now = 0
    const sticky = new StickyConversations(() => now)
    sticky.answered(turn("1"), a, undefined)
    now = hour - 1
    assert.isDefined(sticky.lastOf(turn("1")))
    now = hour
    assert.isUndefined(sticky.lastOf(turn("1")))
  })

  it("make room at the cost of the one used longest ago", () => {
    const sticky = new StickyConversations(() => 0)
    for (let i = 0; i < 10_000; i++) sticky.answered(turn(`${i}`), a, undefined)
    sticky.answered(turn("0"), b, undefined)
    sticky.answered(turn("new"), a, undefined)
    assert.isUndefined(sticky.lastOf(turn("1")))
    assert.deepInclude(sticky.lastOf(turn("0")), b)
  })

  it("with a preferred target put that first, and otherwise leave the order to the route", () => {
    const targets = [{ upstream: "hosted", model: "m" }, { upstream: "gpu", model: "m" }]
    const options = { ...anywhere, targets, spread: "even", wait: 1_000, sticky: turn("1") } as const
    assert.strictEqual(preferring(options, a), options)
    const preferred = preferring({ ...options, sticky: { ...turn("1"), prefersTarget: true } }, a)
    assert.deepInclude(preferred, { targets: [targets[1]!, targets[0]!], spread: "order", wait: 0 })
  })
})

describe("the pool with sticky conversations", () => {
  /** Serves one turn: holds the lease, answers, and gives it back. */
  const serve = Effect.fnUntraced(function*(pool: Parameters<typeof hold>[0], sticky: Stickiness) {
    const { account, free, lease } = yield* hold(pool, managed(), { sticky })
    yield* lease.report(undefined, undefined)
    yield* free
    return account
  })

  it.effect("serves each turn of a conversation on the account of the one before", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({ accounts: accounts("one", "two", "three") })
      const first = yield* serve(pool, turn("x", false))
      yield* serve(pool, turn("y", false))
      assert.strictEqual(yield* serve(pool, turn("x")), first)
      assert.strictEqual(yield* serve(pool, turn("x")), first)
      assert.deepInclude(yield* pool.metrics, { stickyHits: 2, stickyMoves: 0 })
    }))

  it.effect("waits for no preferred account: a full one is passed over", () =>
    Effect.gen(function*() {
      const { pool } = yield* buildPool({
        accounts: accounts("one", "two"),
        runtime: { account_max_inflight: 1 }
      })
      const first = yield* serve(pool, turn("x", false))
      const held = yield* hold(pool, managed(), { sticky: turn("x") })
      assert.strictEqual(held.account, first)
      const other = yield* serve(pool, turn("x"))
      assert.notStrictEqual(other, first)
      yield* held.free
      assert.deepInclude(yield* pool.metrics, { stickyMoves: 1 })
    }))
})
