/** The upstream replaced by a service of the app's own. */
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Stream } from "effect"
import { complete, ConfigStore, fixedUpstream, gatewayServices, makeDriver, UpstreamEvent } from "model-gateway"
import assert from "node:assert/strict"

const Shouting = fixedUpstream(makeDriver({
  complete: ({ conversation }) => {
    const said = conversation.turns.flatMap(({ parts }) => parts.map((part) => part._tag === "Text" ? part.text : ""))
    return Effect.succeed({
      id: "shout-1",
      events: Stream.make<Array<UpstreamEvent.UpstreamEvent>>(
        UpstreamEvent.UpstreamText(said.join(" ").toUpperCase()),
        UpstreamEvent.UpstreamFinish("stop")
      )
    })
  }
}))

const Services = gatewayServices(Shouting).pipe(
  Layer.provideMerge(ConfigStore.layerMemory()),
  Layer.provide(NodeServices.layer)
)

const reply = await Effect.runPromise(
  complete({ model: "upstream-chat", prompt: "hello" }).pipe(Effect.provide(Services))
)
assert.equal(reply.id, "shout-1")
assert.deepEqual(reply.blocks, [{ _tag: "Text", text: "HELLO" }])
assert.equal(reply.finish, "stop")
