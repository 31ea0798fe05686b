/** Webhooks of two nodes over one store: one of them sends an event, and each sends its own while the store is lost. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { UpstreamActivity } from "../../src/accounts/UpstreamActivity.ts"
import { WebhookDeliveries } from "../../src/admin/webhooks/WebhookDeliveries.ts"
import { layerSharedNotices } from "../../src/cluster/store/noticeClaims.ts"
import { Store } from "../../src/cluster/store/Store.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { CurrentNotices, layerNotices } from "../../src/config/Notices.ts"
import { layerDeliveries } from "../../src/server/webhooks/Deliveries.ts"
import { type Receiver, startReceiver } from "../server/webhooks/receiver.ts"
import { until } from "../support/until.ts"
import { settledServer, storeLayer } from "./support.ts"

const secret = `whsec_${Buffer.alloc(32, "a").toString("base64")}`

const receiving = Effect.acquireRelease(
  Effect.promise(startReceiver),
  (receiver) => Effect.promise(receiver.stop)
)

const idleUpstreams = Layer.succeed(UpstreamActivity, {
  upstreams: Effect.succeed([]),
  recentTries: Effect.succeed(new Map())
})

/** The webhooks of a node: how it publishes, and its deliveries. */
const webhookNode = Effect.fnUntraced(function*({ url }: Receiver, store: Layer.Layer<Store, unknown> | undefined) {
  const config = { webhooks: [{ name: "ops", url, secret }] }
  const shared = store === undefined ? Layer.empty : Layer.provideMerge(layerSharedNotices, store)
  const layer = layerDeliveries.pipe(
    Layer.provideMerge(shared),
    Layer.provideMerge(layerNotices),
    Layer.provide(Layer.mergeAll(ConfigStore.layerJson(config), NodeHttpClient.layerUndici, idleUpstreams))
  )
  const context = yield* Layer.build(Layer.fresh(layer))
  return {
    notices: Context.get(context, CurrentNotices),
    deliveries: Context.get(context, WebhookDeliveries),
    isUp: () => {
      const found = Context.getOption(context, Store)
      return found._tag === "Some" && found.value.isUp()
    }
  }
})

const cooled = { upstream: "one", reason: "it failed", seconds: 10 }
const budget = {
  key: "k",
  name: null,
  account: null,
  note: null,
  upstream: null,
  window: "day",
  unit: "requests",
  limit: 5,
  used: 4,
  share: 0.8,
  resets_at: "2100-01-02T00:00:00Z"
}
const end = Date.UTC(2100, 0, 2)

describe("webhooks of two nodes", () => {
  it.live("send an event once, and each its own with the same id while the store is lost", () =>
    Effect.gen(function*() {
      const server = yield* settledServer
      const receiver = yield* receiving
      const one = yield* webhookNode(receiver, storeLayer(server, "one", { timeoutMillis: 250 }))
      const other = yield* webhookNode(receiver, storeLayer(server, "other", { timeoutMillis: 250 }))
      for (const { notices } of [one, other]) {
        notices.publish("budget.warning", "k day 1", budget, end)
        notices.publish("upstream.cooled", "one", cooled)
        // A later event of the same window, and within the same minute.
        notices.publish("budget.warning", "k day 1", { ...budget, used: 5 }, end)
        notices.publish("upstream.cooled", "one", cooled)
        // What is behind it in the queue has been looked at when it comes.
        notices.publish("upstream.back", notices === one.notices ? "one" : "other", { upstream: "one" })
      }
      yield* until(() => receiver.types().filter((type) => type === "upstream.back").length === 2)
      assert.sameMembers([...receiver.types()], ["budget.warning", "upstream.cooled", "upstream.back", "upstream.back"])
      yield* Effect.promise(() => server.stop())
      yield* until(() => !one.isUp() && !other.isUp())
      const lost = () => receiver.received.filter(({ body }) => body.type === "store.lost")
      yield* until(() => lost().length === 2)
      for (const { notices } of [one, other]) notices.publish("budget.reached", "k day 1", budget, end)
      const reached = () => receiver.received.filter(({ body }) => body.type === "budget.reached")
      yield* until(() => reached().length === 2)
      assert.strictEqual(new Set(reached().map(({ headers }) => headers["webhook-id"])).size, 1)
    }))
})

describe("a webhook of one node", () => {
  it.live("keeps a thousand events for a receiver that does not answer, and counts those that it drops", () =>
    Effect.gen(function*() {
      const receiver = yield* receiving
      receiver.answer = () => undefined
      const { deliveries, notices } = yield* webhookNode(receiver, undefined)
      const publish = (subject: string) => notices.publish("upstream.back", subject, { upstream: subject })
      publish("first")
      yield* until(() => receiver.received.length === 1)
      for (let i = 0; i < 999; i++) publish(`of-${i}`)
      yield* until(() => deliveries.stateOf("ops").waiting === 1_000)
      publish("one-more")
      publish("another")
      yield* until(() => deliveries.stateOf("ops").dropped === 2)
      assert.strictEqual(deliveries.stateOf("ops").waiting, 1_000)
    }))
})
