/** An app changes keys, accounts, routes, upstreams, prices and tokens without HTTP, by the rules of the admin API. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import {
  AccountEntries,
  Callers,
  complete,
  ConfigStore,
  fixedUpstream,
  gatewayServices,
  Keys,
  makeDriver,
  Prices,
  Reply,
  Routes,
  Tokens,
  UpstreamEntries,
  UpstreamEvent
} from "../../src/index.ts"

const Said = fixedUpstream(makeDriver({
  complete: ({ model }) =>
    Effect.succeed({
      id: "said",
      events: Stream.make<Array<UpstreamEvent.UpstreamEvent>>(
        UpstreamEvent.UpstreamText(model.id),
        UpstreamEvent.UpstreamFinish("stop")
      )
    })
}))

const app = gatewayServices(Said).pipe(
  Layer.provideMerge(ConfigStore.layerMemory({ upstream: { driver: "embedded" } })),
  Layer.provide(NodeServices.layer)
)

/** What a caller with a key is. */
const identified = (key: string) =>
  Effect.flatMap(Callers, (callers) =>
    Effect.match(callers.identify(key, undefined, "192.0.2.1"), {
      onFailure: ({ code }) => code,
      onSuccess: ({ _tag }) => _tag
    }))

describe("an app without HTTP", () => {
  it.effect("adds, changes and removes a key, whose caller is known immediately", () =>
    Effect.gen(function*() {
      const keys = yield* Keys
      const [generated] = yield* keys.list
      const added = yield* keys.add({ generate: true, name: "team a", limits: [{ window: "day", requests: 10 }] })
      assert.match(added.key, /^sk-gw-/)
      assert.strictEqual(added.ended, generated?.id)
      assert.deepStrictEqual(yield* keys.list, [{ id: added.id, key: added.key }])
      assert.strictEqual(yield* identified(added.key), "Managed")
      const { config } = yield* keys.change(added.id, { disabled: true, note: "on leave", name: null })
      assert.deepInclude(config.key_records.get(added.id), { disabled: true, note: "on leave", name: undefined })
      assert.strictEqual(yield* identified(added.key), "authentication_failed")
      assert.strictEqual((yield* keys.remove(added.key)).id, added.id)
      assert.deepStrictEqual(yield* keys.list, [])
    }).pipe(Effect.provide(app)))

  it.effect("gets the errors of the admin API for a wrong key", () =>
    Effect.gen(function*() {
      const keys = yield* Keys
      const refusal = <A>(change: Effect.Effect<A, { readonly message: string }>) =>
        Effect.map(Effect.flip(change), ({ message }) => message)
      assert.strictEqual(yield* refusal(keys.add({})), "key is required, or generate: true")
      assert.strictEqual(yield* refusal(keys.add({ key: "k", generate: true })), "key must not be sent with generate")
      assert.include(yield* refusal(keys.add({ key: "k", max_inflight: "many" })), "max_inflight must be")
      assert.include(yield* refusal(keys.add({ key: "k", models: ["unheard-of"] })), "must name a model")
      assert.strictEqual(yield* refusal(keys.change("0123456789abcdef", {})), "No such key is configured")
      const { config } = yield* keys.add({ key: "k" }, { dryRun: true })
      assert.deepStrictEqual(config.configured_keys, ["k"])
      assert.deepStrictEqual((yield* (yield* ConfigStore).current).configured_keys, [])
    }).pipe(Effect.provide(app)))

  it.effect("adds an upstream and a route to it, and removes both together", () =>
    Effect.gen(function*() {
      const [store, upstreams, routes] = yield* Effect.all([ConfigStore, UpstreamEntries, Routes])
      const entry = { driver: "openai", base_url: "http://127.0.0.1:9/v1", models: { big: "big-1" } }
      const drafted = yield* upstreams.draft(entry)
      assert.deepInclude(drafted, { driver: "openai", base_url: "http://127.0.0.1:9/v1" })
      const wrong = yield* Effect.flip(upstreams.draft({ ...entry, base_url: "nowhere" }))
      assert.match(wrong.message, /^upstream\.base_url /)
      yield* upstreams.add({ name: "further", ...entry })
      yield* upstreams.change("further", { enabled: false })
      assert.isFalse(store.now().upstreams.get("further")?.enabled)
      yield* routes.set({ any: ["further/big", "default/upstream-chat"] })
      assert.deepStrictEqual(store.now().routes.map(({ name }) => name), ["any"])
      assert.strictEqual(Reply.replyText(yield* complete({ model: "any", prompt: "Hello" })), "upstream-chat")
      const conflict = yield* Effect.flip(upstreams.remove("further"))
      assert.include(conflict.message, "the upstream further has 1 target")
      const { removed } = yield* upstreams.remove("further", { force: true })
      assert.deepStrictEqual(removed, { accounts: [], targets: ["any: further/big"], routes: [] })
      assert.isFalse(store.now().upstreams.has("further"))
    }).pipe(Effect.provide(app)))

  it.effect("adds, marks and removes an account", () =>
    Effect.gen(function*() {
      const [store, accounts] = yield* Effect.all([ConfigStore, AccountEntries])
      const { account } = yield* accounts.add({ email: " a@x.org ", password: "p" })
      assert.strictEqual(account?.name, "a@x.org")
      const twice = yield* Effect.flip(accounts.add({ email: "A@X.org", password: "q" }))
      assert.strictEqual(twice.message, "The account already exists")
      assert.strictEqual(
        (yield* Effect.flip(accounts.add({ email: "b@x.org" }))).message,
        "password or token is required"
      )
      const marked = yield* accounts.mark("a@x.org", { disabled: true, note: "on leave" })
      assert.deepInclude(marked.account, { disabled: true, note: "on leave" })
      yield* accounts.remove("A@x.org")
      assert.deepStrictEqual(store.now().accounts, [])
      const gone = yield* Effect.flip(accounts.remove("a@x.org"))
      assert.strictEqual(gone.message, "No such account is configured")
    }).pipe(Effect.provide(app)))

  it.effect("sets prices, and adds and removes a token for the admin API", () =>
    Effect.gen(function*() {
      const [store, tokens, prices] = yield* Effect.all([ConfigStore, Tokens, Prices])
      yield* prices.set({ "upstream-chat": { input: 1, output: 2 } })
      assert.deepStrictEqual((yield* store.currentRaw)["prices"], { "upstream-chat": { input: 1, output: 2 } })
      const { secret, token } = yield* tokens.add({ name: "dashboard", role: "viewer" })
      assert.match(secret, /^mga-/)
      assert.deepStrictEqual((yield* tokens.list).map(({ name, role }) => [name, role]), [["dashboard", "viewer"]])
      const twice = yield* Effect.flip(tokens.add({ name: "dashboard", role: "admin" }))
      assert.include(twice.message, "already exists")
      yield* tokens.remove(token?.id ?? "")
      assert.deepStrictEqual(yield* tokens.list, [])
    }).pipe(Effect.provide(app)))
})
