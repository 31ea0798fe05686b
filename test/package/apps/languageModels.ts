/** A `LanguageModel` of effect/ai as the upstream, and the gateway over it as another `LanguageModel`. */
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Schema, Stream } from "effect"
import { LanguageModel, Tool, Toolkit } from "effect/ai"
import { ConfigStore, gatewayServices, languageModel, languageModelUpstream } from "model-gateway"
import assert from "node:assert/strict"

const usage = {
  inputTokens: { total: 7, cacheRead: 2, uncached: 5, cacheWrite: undefined },
  outputTokens: { total: 5, reasoning: 2, text: 3 }
}

/** A provider that thinks, calls the weather tool once, and then repeats the tool's result. */
const Provider = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({
    generateText: () => Effect.die("the gateway streams"),
    streamText: ({ prompt, tools }) => {
      const last = prompt.content.at(-1)
      if (last?.role === "tool") {
        const said = last.content.map((part) => part.type === "tool-result" ? JSON.stringify(part.result) : "").join()
        return Stream.make(
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: `It is ${said}.` },
          { type: "text-end", id: "t" },
          { type: "finish", reason: "stop", usage }
        )
      }
      assert.deepEqual(tools.map((tool) => tool.name), ["weather"])
      return Stream.make(
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "Which city?" },
        { type: "reasoning-end", id: "r" },
        { type: "tool-params-start", id: "c", name: "weather" },
        { type: "tool-params-delta", id: "c", delta: "{\"city\":" },
        { type: "tool-params-delta", id: "c", delta: "\"Paris\"}" },
        { type: "tool-params-end", id: "c" },
        { type: "tool-call", id: "c", name: "weather", params: { city: "Paris" } },
        { type: "finish", reason: "tool-calls", usage }
      )
    }
  })
)

const Gateway = languageModel({ model: "upstream-reasoner" }).pipe(
  Layer.provide(gatewayServices(languageModelUpstream)),
  Layer.provide(Provider),
  Layer.provide(ConfigStore.layerMemory()),
  Layer.provide(NodeServices.layer)
)

const Weather = Tool.make("weather", {
  description: "The weather in a city",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.String
})
const toolkit = Toolkit.make(Weather)
const Handlers = toolkit.toLayer({ weather: ({ city }) => Effect.succeed(`sunny in ${city}`) })

const program = Effect.gen(function*() {
  const first = yield* LanguageModel.generateText({ prompt: "What is the weather in Paris?", toolkit })
  assert.equal(first.reasoningText, "Which city?")
  assert.deepEqual(first.toolCalls.map(({ name, params }) => [name, params]), [["weather", { city: "Paris" }]])
  assert.deepEqual(first.toolResults.map(({ result }) => result), ["sunny in Paris"])
  assert.equal(first.finishReason, "tool-calls")
  assert.deepEqual([first.usage.inputTokens.total, first.usage.inputTokens.cacheRead], [7, 2])
  assert.deepEqual([first.usage.outputTokens.total, first.usage.outputTokens.reasoning], [5, 2])

  const parts = yield* LanguageModel.streamText({ prompt: "What is the weather in Paris?", toolkit }).pipe(
    Stream.runCollect
  )
  assert.deepEqual(parts.map((part) => part.type).filter((type) => type !== "tool-params-delta"), [
    "response-metadata",
    "reasoning-start",
    "reasoning-delta",
    "reasoning-end",
    "tool-params-start",
    "tool-params-end",
    "tool-call",
    "tool-result",
    "finish"
  ])

  const second = yield* LanguageModel.generateText({
    prompt: [
      { role: "user", content: "What is the weather in Paris?" },
      { role: "assistant", content: [{ type: "tool-call", id: "c", name: "weather", params: { city: "Paris" } }] },
      { role: "tool", content: [{ type: "tool-result", id: "c", name: "weather", isFailure: false, result: "sunny" }] }
    ]
  })
  assert.equal(second.text, "It is \"sunny\".")
  assert.equal(second.finishReason, "stop")
})

await Effect.runPromise(program.pipe(Effect.provide([Gateway, Handlers])))
