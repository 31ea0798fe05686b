/** Client APIs over an app's own driver, without the gateway. */
import { Effect, Layer, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { chat, completionOf, Entrance, repliesOf, responses, UpstreamFinish, UpstreamText } from "model-gateway/styles"
import assert from "node:assert/strict"

const Shouting = completionOf(repliesOf({
  complete: ({ conversation }) => {
    const said = conversation.turns.flatMap(({ parts }) => parts.map((part) => part._tag === "Text" ? part.text : ""))
    return Effect.succeed({
      id: "shout-1",
      events: Stream.make(UpstreamText(said.join(" ").toUpperCase()), UpstreamFinish("stop"))
    })
  }
}))

const { dispose, handler } = HttpRouter.toWebHandler(
  Layer.merge(chat.handlers, responses.handlers).pipe(
    Layer.provide([Shouting, Entrance.layerOpen, HttpServer.layerServices])
  ),
  { disableLogger: true }
)

const ask = async (path: string, body: object) => {
  const response = await handler(new Request(`http://app${path}`, { method: "POST", body: JSON.stringify(body) }))
  assert.equal(response.status, 200)
  return response.text()
}
assert.match(await ask("/v1/chat/completions", { model: "m", messages: [{ role: "user", content: "hello" }] }), /HELLO/)
assert.match(await ask("/v1/responses", { model: "m", input: "hello", stream: true }), /HELLO[^]*response\.completed/)
await dispose()
