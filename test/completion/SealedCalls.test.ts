import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SealedCalls } from "../../src/completion/SealedCalls.ts"
import { type Conversation, plainConversation } from "../../src/domain/Conversation.ts"
import type { Maker } from "../../src/domain/makers.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"

const conversation = (...ids: ReadonlyArray<string>): Conversation => ({
  ...plainConversation,
  turns: [{
    role: "assistant",
    parts: ids.map((id) => ({
      _tag: "Call",
      id,
      name: "f",
      arguments: "{}",
      vendorFields: undefined,
      sealed: undefined
    }))
  }]
})

const minute = 60_000

const ofDefault = (fields: { readonly x: number | string }) => ({ upstream: "default", fields, maker: undefined })

const account = (upstream: string, account = "", organization?: string): Maker => ({ upstream, account, organization })

describe("what is kept of calls", () => {
  const start = () => {
    let now = 0
    const calls = new SealedCalls(() => now)
    const restored = (owner: string, ...ids: ReadonlyArray<string>) =>
      runSync(calls.restored(owner, conversation(...ids), minute, account("default"))).turns[0]!.parts
        .map((part) => part._tag === "Call" ? part.sealed : undefined)
    return { calls, restored, pass: (millis: number) => void (now += millis) }
  }

  it("belongs to its caller and call", () => {
    const { calls, restored } = start()
    calls.keep("a", "1", ofDefault({ x: 1 }))
    assert.deepStrictEqual(restored("a", "1", "2"), [{ x: 1 }, undefined])
    assert.deepStrictEqual(restored("b", "1"), [undefined])
    assert.isTrue(calls.isEmpty("b"))
  })

  it("goes back to the upstream that sealed it alone", () => {
    const { calls, restored } = start()
    calls.keep("a", "1", { upstream: "gpu", fields: { x: 1 }, maker: undefined })
    calls.keep("a", "2", ofDefault({ x: 2 }))
    assert.deepStrictEqual(restored("a", "1", "2"), [undefined, { x: 2 }])
    const { parts } = runSync(calls.restored("a", conversation("1", "2"), minute, account("gpu"))).turns[0]!
    assert.deepStrictEqual(parts.map((part) => part._tag === "Call" && part.sealed), [{ x: 1 }, undefined])
  })

  it("is forgotten after its time", () => {
    const { calls, pass, restored } = start()
    calls.keep("a", "1", ofDefault({ x: 1 }))
    pass(minute)
    assert.deepStrictEqual(restored("a", "1"), [undefined])
    assert.isTrue(calls.isEmpty("a"))
  })

  it("makes room at the cost of the caller that has the most, oldest first", () => {
    const { calls, restored } = start()
    calls.keep("b", "1", ofDefault({ x: 1 }))
    for (let i = 0; i < 10_005; i++) calls.keep("a", `${i}`, ofDefault({ x: i }))
    assert.deepStrictEqual(restored("b", "1"), [{ x: 1 }])
    assert.deepStrictEqual(restored("a", "0", "5", "6"), [undefined, undefined, { x: 6 }])
  })

  it("leaves out what is too large", () => {
    const { calls } = start()
    calls.keep("a", "1", ofDefault({ x: "x".repeat(1024 * 1024) }))
    assert.isTrue(calls.isEmpty("a"))
  })
})

describe("calls that other nodes may know", () => {
  const start = () => {
    const kept = new Map<string, string>()
    const asked: Array<string> = []
    const state = { isDown: false }
    const calls = new SealedCalls(() => 0, {
      put: (owner, callId, text) => Effect.sync(() => void kept.set(`${owner} ${callId}`, text)),
      get: (owner, callId) =>
        Effect.suspend(() => {
          asked.push(callId)
          return state.isDown ? Effect.fail("down") : Effect.succeed(kept.get(`${owner} ${callId}`))
        })
    })
    const restored = (owner: string, id: string) =>
      runSync(calls.restored(owner, conversation(id), minute, account("default"))).turns[0]!.parts[0]!
    return { asked, calls, kept, restored, state }
  }

  it.effect("are looked up once, by their caller", () =>
    Effect.gen(function*() {
      const { asked, calls, kept, restored } = start()
      kept.set("a 1", "[\"default\",{\"x\":1}]")
      yield* calls.lookUp("a", conversation("1", "2"))!
      assert.deepInclude(restored("a", "1"), { sealed: { x: 1 } })
      assert.isUndefined(calls.lookUp("a", conversation("1", "2")))
      yield* calls.lookUp("b", conversation("1"))!
      assert.isTrue(calls.isEmpty("b"))
      assert.deepStrictEqual(asked, ["1", "2", "1"])
    }))

  it.effect("are unknown in another form than this version writes", () =>
    Effect.gen(function*() {
      const { calls, kept, restored } = start()
      const texts = ["", "3", "null", "[]", "{\"x\":1}", "[1,{}]", "[\"gpu\",{},{}]", "[\"default\",\"x\"]"]
      for (const [i, text] of texts.entries()) kept.set(`a ${i}`, text)
      kept.set("a good", "[\"default\",{\"x\":1}]")
      yield* calls.lookUp("a", conversation(...texts.map((_, i) => `${i}`), "good"))!
      for (const i of texts.keys()) assert.propertyVal(restored("a", `${i}`), "sealed", undefined)
      assert.deepInclude(restored("a", "good"), { sealed: { x: 1 } })
    }))

  it.effect("are looked up again if the store did not answer", () =>
    Effect.gen(function*() {
      const { asked, calls, state } = start()
      state.isDown = true
      yield* calls.lookUp("a", conversation("1"))!
      state.isDown = false
      yield* calls.lookUp("a", conversation("1"))!
      assert.isUndefined(calls.lookUp("a", conversation("1")))
      assert.deepStrictEqual(asked, ["1", "1"])
    }))

  it.effect("are looked up to a bound for each request", () =>
    Effect.gen(function*() {
      const { asked, calls } = start()
      yield* calls.lookUp("a", conversation(...Array.from({ length: 100 }, (_, i) => `${i}`), "x".repeat(201)))!
      assert.lengthOf(asked, 32)
    }))

  it.effect("are written by the node that keeps them, and need no look-up there", () =>
    Effect.gen(function*() {
      const { calls, kept } = start()
      yield* calls.keep("a", "1", ofDefault({ x: 1 }))!
      assert.strictEqual(kept.get("a 1"), "[\"default\",{\"x\":1}]")
      yield* calls.keep("a", "2", { upstream: "gpu", fields: { x: 2 }, maker: undefined })!
      assert.strictEqual(kept.get("a 2"), "[\"gpu\",{\"x\":2}]")
      assert.isUndefined(calls.lookUp("a", conversation("1")))
    }))
})

/** A conversation of whose items only the seals count. */
const sealedBy = (...seals: ReadonlyArray<string>): Conversation => ({
  ...conversation(),
  turns: [],
  vendorFields: { vendor: "responses", fields: {}, wholeElement: true, seals }
})

describe("the maker of a seal", () => {
  const day = 86_400_000
  const seal = (end: string) => `${"x".repeat(200)}${end.padStart(64, "-")}`

  it("is known by the caller and the end of the seal, for a day", () => {
    let now = 0
    const calls = new SealedCalls(() => now)
    calls.keepMaker("a", seal("1"), account("gpu", "one", "team"))
    assert.deepStrictEqual(calls.makerOf("a", `other${seal("1")}`), account("gpu", "one", "team"))
    assert.isUndefined(calls.makerOf("a", seal("2")))
    assert.isUndefined(calls.makerOf("b", seal("1")))
    now = day - 1
    assert.isDefined(calls.makerOf("a", seal("1")))
    now = day
    assert.isUndefined(calls.makerOf("a", seal("1")))
  })

  it("counts among the kept calls, of which the oldest are forgotten", () => {
    const calls = new SealedCalls(() => 0)
    for (let i = 0; i < 10_001; i++) calls.keepMaker("a", seal(`${i}`), account("gpu", "one"))
    assert.isUndefined(calls.makerOf("a", seal("0")))
    assert.isDefined(calls.makerOf("a", seal("1")))
  })

  it("is the newest one that is known, also of a call", () => {
    const calls = new SealedCalls(() => 0)
    assert.isUndefined(calls.newestMaker("a", sealedBy(seal("1"))))
    calls.keepMaker("a", seal("1"), account("gpu", "one"))
    calls.keepMaker("a", seal("2"), account("gpu", "two"))
    assert.strictEqual(calls.newestMaker("a", sealedBy(seal("1"), seal("2"), seal("3")))?.account, "two")
    assert.strictEqual(calls.newestMaker("a", sealedBy(seal("2"), seal("1")))?.account, "one")
    calls.keep("a", "call", { upstream: "gpu", fields: {}, maker: account("gpu", "three") })
    assert.strictEqual(calls.newestMaker("a", conversation("call", "other"))?.account, "three")
  })

  it("decides who gets what was kept of a call", () => {
    const calls = new SealedCalls(() => 0)
    const kept = (maker: Maker) => {
      calls.keep("a", "1", { upstream: "gpu", fields: { x: 1 }, maker })
      return (account: Maker) => {
        const [part] = runSync(calls.restored("a", conversation("1"), minute, account)).turns[0]!.parts
        return part?._tag === "Call" && part.sealed !== undefined
      }
    }
    const alone = kept(account("gpu", "one"))
    assert.deepStrictEqual(
      [account("gpu", "one", "x"), account("gpu", "two"), account("gpu", "two", "x"), account("hosted", "one")].map(
        alone
      ),
      [true, false, false, false]
    )
    const team = kept(account("gpu", "one", "team"))
    const others = [account("gpu", "two", "team"), account("gpu", "two", "other"), account("hosted", "two", "team")]
    assert.deepStrictEqual(others.map(team), [true, false, false])
    // Nothing is known of an account that has not answered yet.
    assert.isTrue(team(account("gpu", "two")))
  })

  it.effect("is read by other nodes, which look up each seal once", () =>
    Effect.gen(function*() {
      const kept = new Map<string, string>()
      const asked: Array<string> = []
      const shared = {
        put: (owner: string, id: string, text: string) => Effect.sync(() => void kept.set(`${owner} ${id}`, text)),
        get: (owner: string, id: string) =>
          Effect.sync(() => {
            asked.push(id)
            return kept.get(`${owner} ${id}`)
          })
      }
      const [one, other] = [new SealedCalls(() => 0, shared), new SealedCalls(() => 0, shared)]
      yield* one.keepMaker("a", seal("1"), account("gpu", "one", "team"))!
      yield* one.keepMaker("a", seal("2"), account("default", "two"))!
      const sealed = sealedBy(seal("1"), seal("2"), seal("3"))
      yield* other.lookUp("a", sealed)!
      assert.deepStrictEqual(other.makerOf("a", seal("1")), account("gpu", "one", "team"))
      assert.deepStrictEqual(other.makerOf("a", seal("2")), account("default", "two"))
      assert.isUndefined(other.makerOf("a", seal("3")))
      assert.strictEqual(asked.length, 3)
      assert.isUndefined(other.lookUp("a", sealed))
    }))

  it.effect("is looked up for the newest seals of a request", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const calls = new SealedCalls(() => 0, {
        put: () => Effect.void,
        get: (_, id) => Effect.sync(() => void asked.push(id))
      })
      yield* calls.lookUp("a", sealedBy(...Array.from({ length: 40 }, (_, i) => seal(`${i}`))))!
      assert.strictEqual(asked.length, 32)
      assert.isTrue(asked[0]!.endsWith("-39"))
    }))
})
