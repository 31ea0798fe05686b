/** Whatever service an app decorates, the gateway's replies show it: nothing goes past a service's own shape. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import {
  Accounts,
  Completion,
  ConfigStore,
  configuredUpstream,
  type Driver,
  GatewayError,
  gatewayServices,
  httpClientExchanges,
  InProcessState,
  mountGateway,
  type ReplyEvent,
  Upstreams
} from "../../src/index.ts"

const platform = Layer.mergeAll(NodeHttpClient.layerUndici, NodeServices.layer, HttpServer.layerServices)

const config = ConfigStore.layerMemory({ keys: ["key"] })

/** The upstream that the configuration asks for: the one inside the gateway. */
const builtIn = Layer.provide(configuredUpstream, httpClientExchanges)

/** What a caller gets who asks for "hello", whole and streamed. */
const repliesOf = <E>(app: Layer.Layer<never, E, HttpRouter.HttpRouter | HttpRouter.Request<"Error", unknown>>) =>
  Effect.gen(function*() {
    const { handler } = yield* Effect.acquireRelease(
      Effect.sync(() => HttpRouter.toWebHandler(app, { disableLogger: true })),
      ({ dispose }) => Effect.promise(dispose)
    )
    const ask = (stream: boolean, model = "upstream-chat") =>
      Effect.promise(() =>
        handler(
          new Request("http://app.test/ai/v1/chat/completions", {
            method: "POST",
            headers: { authorization: "Bearer key" },
            body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "hello" }] })
          })
        ).then((response) => response.text())
      )
    return { whole: yield* ask(false), streamed: yield* ask(true), ask }
  })

const assertSay = ({ streamed, whole }: { readonly streamed: string; readonly whole: string }, said: string) => {
  assert.include(whole, said)
  assert.include(streamed, said)
}

const loud = <A extends { readonly _tag: string }>(event: A): A =>
  event._tag === "UpstreamText" || event._tag === "TextDelta"
    ? { ...event, text: (event as A & { readonly text: string }).text.toUpperCase() }
    : event

const loudDriver = (driver: Driver): Driver => ({
  ...driver,
  complete: (request) =>
    Effect.map(driver.complete(request), (reply) => ({ ...reply, events: Stream.map(reply.events, loud) }))
})

describe("an app that decorates a service:", () => {
  it.effect("changed events of a built-in driver reach the reply", () =>
    Effect.gen(function*() {
      const decorated = Upstreams.layerMapped(loudDriver).pipe(Layer.provide(builtIn))
      const app = mountGateway("/ai").pipe(Layer.provide(gatewayServices(decorated)), Layer.provide(config))
      assertSay(yield* repliesOf(Layer.provide(app, platform)), "HELLO")
    }))

  it.effect("a changed completion reaches the reply", () =>
    Effect.gen(function*() {
      const decorated = Layer.effect(
        Completion,
        Effect.map(Completion, (completion) =>
          Completion.of({
            ...completion,
            stream: (input) =>
              Effect.map(
                completion.stream(input),
                (output) => ({ ...output, events: Stream.map(output.events, loud) })
              ),
            whole: (input) =>
              Effect.map(completion.whole(input), (output) => {
                const [first, ...rest] = output.events
                const events: typeof output.events = [loud(first), ...rest.map(loud<ReplyEvent.ReplyEvent>)]
                return { ...output, events }
              })
          }))
      )
      const app = mountGateway("/ai").pipe(
        Layer.provide(Layer.provideMerge(decorated, gatewayServices(builtIn))),
        Layer.provide(config)
      )
      assertSay(yield* repliesOf(Layer.provide(app, platform)), "HELLO")
    }))

  it.effect("a changed account pool reaches the reply", () =>
    Effect.gen(function*() {
      const decorated = Layer.effect(
        Accounts,
        Effect.map(Accounts, (accounts) => {
          let leases = 0
          return Accounts.of({
            ...accounts,
            lease: (caller, options) =>
              ++leases > 2
                ? Effect.fail(
                  new GatewayError({ code: "no_account_available", message: "That was enough", param: null })
                )
                : Effect.map(
                  accounts.lease(caller, options),
                  (lease) => ({ ...lease, driver: loudDriver(lease.driver) })
                )
          })
        })
      ).pipe(Layer.provideMerge(InProcessState))
      const app = mountGateway("/ai").pipe(
        Layer.provide(gatewayServices(builtIn, decorated)),
        Layer.provide(config)
      )
      const replies = yield* repliesOf(Layer.provide(app, platform))
      assertSay(replies, "HELLO")
      assert.include(yield* replies.ask(true), "That was enough")
    }))

  it.effect("a changed configuration reaches the reply", () =>
    Effect.gen(function*() {
      const decorated = Layer.effect(
        ConfigStore,
        Effect.map(ConfigStore, (store) =>
          ConfigStore.of({
            ...store,
            now: () => {
              const current = store.now()
              const { limits } = current
              return { ...current, limits: { ...limits, model_chars: 10 } }
            }
          }))
      ).pipe(Layer.provideMerge(config))
      const app = mountGateway("/ai").pipe(Layer.provide(gatewayServices(builtIn)), Layer.provide(decorated))
      assertSay(yield* repliesOf(Layer.provide(app, platform)), "at most 10 are allowed")
    }))
})
