/** Credentials of nodes that share a store: a token is issued once for all of them, and a file is each node's own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { hold, makeDriver } from "../accounts/support.ts"
import { poolNode } from "../cluster/poolNode.ts"
import { sentDuring, settledServer } from "../cluster/support.ts"
import { aws, bare, command, entra, file, google, makeBacking, type ScriptedSource, withBacking } from "./support.ts"

const nodes = Effect.fnUntraced(function*(source: ScriptedSource) {
  const server = yield* settledServer
  const backing = makeBacking()
  backing.tokens.set("a", "canary-1")
  const { driver } = makeDriver({ name: "openai" }, { login: undefined, sessions: undefined })
  const config = {
    upstream: {
      driver: "openai",
      models: { m: "m" },
      ...(source === aws ? { vendor: "bedrock", region: "eu-central-1" } : { base_url: "http://127.0.0.1:9/v1" })
    },
    accounts: [{ credential: source.credential("a") }],
    runtime: { account_max_inflight: 8 }
  }
  const node = (id: string) =>
    Effect.flatMap(
      withBacking(backing)(poolNode(server, id, config, driver)),
      ({ pool }) =>
        Effect.map(hold(pool), ({ free, lease: { account, credential } }) => ({
          credential: bare(credential),
          free,
          facts: Effect.map(pool.describe([account!.identifier]), ([facts]) => facts!)
        }))
    )
  return { ...backing, node, server }
})

describe.each([command, google, entra, aws])("nodes that share a store, with a credential from $from", (source) => {
  it.live("have one token, renewed once, of which the store has no clear text", () =>
    Effect.gen(function*() {
      const { asked, node, server, tokens } = yield* nodes(source)
      // AWS writes the end of keys in whole seconds.
      const lives = (millis: number) =>
        assert.isTrue(millis <= source.life! && millis > source.life! - 1_000, `${millis} ms`)
      const [one, other] = [yield* node("one"), yield* node("other")]
      const both = [one.credential, other.credential]
      const sent = yield* sentDuring(
        server,
        Effect.gen(function*() {
          const first = yield* Effect.forEach(both, ({ token }) => token, { concurrency: 2 })
          assert.deepStrictEqual(first, ["canary-1", "canary-1"])
          tokens.set("a", "canary-2")
          const renewed = yield* Effect.forEach(both, (each) => each.renew("canary-1"), { concurrency: 2 })
          assert.deepStrictEqual(renewed, ["canary-2", "canary-2"])
        })
      )
      assert.deepStrictEqual(asked, ["a", "a"])
      assert.isAtLeast(sent.length, 1)
      assert.notInclude(JSON.stringify(sent), "canary")
      const ends = yield* Effect.forEach([one, other], ({ facts }) => facts)
      for (const { credential: { expires = 0, kind, renewed = 0 } = {}, hasToken, tokenPreview } of ends) {
        assert.deepStrictEqual([kind, hasToken], [source.from, true])
        assert.match(tokenPreview, /^ca(na)?\.\.\.$/)
        lives(expires - renewed)
      }
      // A node that starts later has the token without asking for one.
      const later = yield* node("later")
      assert.strictEqual(yield* later.credential.token, "canary-2")
      const { expires = 0, renewed = 0 } = (yield* later.facts).credential!
      lives(expires - renewed)
      assert.lengthOf(asked, 2)
      yield* Effect.forEach([one, other, later], ({ free }) => free)
    }))

  it.live("are without the account while its source fails", () =>
    Effect.gen(function*() {
      const { node, tokens } = yield* nodes(source)
      tokens.set("a", undefined)
      const [one, other] = [yield* node("one"), yield* node("other")]
      yield* Effect.forEach([one, other], ({ credential }) => Effect.flip(credential.token), { concurrency: 2 })
      for (const { facts } of [one, other]) {
        const { health, reason } = yield* facts
        assert.strictEqual(health, "out")
        assert.match(reason ?? "", source.failure)
      }
      yield* Effect.forEach([one, other], ({ free }) => free)
    }))
})

describe("nodes that share a store", () => {
  it.live("read their own files", () =>
    Effect.gen(function*() {
      const { asked, node, tokens } = yield* nodes(file)
      const [one, other] = [yield* node("one"), yield* node("other")]
      assert.strictEqual(yield* one.credential.token, "canary-1")
      tokens.set("a", "canary-2")
      assert.strictEqual(yield* other.credential.token, "canary-2")
      assert.strictEqual(yield* one.credential.token, "canary-1")
      assert.lengthOf(asked, 2)
      yield* Effect.forEach([one, other], ({ free }) => free)
    }))
})
