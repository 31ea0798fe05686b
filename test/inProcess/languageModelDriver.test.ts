/** Calls of a `LanguageModel` that is the upstream, in whatever way its provider tells them. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { LanguageModel, type Response } from "effect/ai"
import {
  complete,
  ConfigStore,
  type Conversation,
  gatewayServices,
  languageModelUpstream,
  Reply
} from "../../src/index.ts"

const finish: Response.StreamPartEncoded = {
  type: "finish",
  reason: "tool-calls",
  usage: { inputTokens: { total: 7 }, outputTokens: { total: 5 } }
}

/** The calls that a caller is told where the provider says this. */
const callsOf = (
  parts: ReadonlyArray<Response.StreamPartEncoded>,
  tools: Conversation.Conversation["tools"] = [{ name: "read" }, { name: "write" }]
) =>
  complete({ model: "upstream-chat", prompt: "Do it", tools }).pipe(
    Effect.map((reply) => Reply.replyCalls(reply).map(({ arguments: args, name }) => `${name} ${args}`)),
    Effect.provide(
      gatewayServices(languageModelUpstream).pipe(
        Layer.provide(Layer.effect(
          LanguageModel.LanguageModel,
          LanguageModel.make({
            generateText: () => Effect.die("the gateway streams"),
            streamText: () => Stream.fromIterable([...parts, finish])
          })
        )),
        Layer.provideMerge(ConfigStore.layerMemory()),
        Layer.provide(NodeServices.layer)
      )
    )
  )

describe("languageModelUpstream: a tool call", () => {
  it.effect("has the arguments of its final part when no pieces came before", () =>
    Effect.gen(function*() {
      const calls = yield* callsOf([
        { type: "tool-params-start", id: "a", name: "write" },
        { type: "tool-params-end", id: "a" },
        { type: "tool-call", id: "a", name: "write", params: { path: "notes" } }
      ])
      assert.deepEqual(calls, ["write {\"path\":\"notes\"}"])
    }))

  it.effect("appears once when its arguments came in pieces", () =>
    Effect.gen(function*() {
      const calls = yield* callsOf([
        { type: "tool-params-start", id: "a", name: "write" },
        { type: "tool-params-delta", id: "a", delta: "{\"path\":" },
        { type: "tool-params-delta", id: "a", delta: "\"notes\"}" },
        { type: "tool-params-end", id: "a" },
        { type: "tool-call", id: "a", name: "write", params: { path: "notes" } }
      ])
      assert.deepEqual(calls, ["write {\"path\":\"notes\"}"])
    }))

  it.effect("is separate from an earlier call with the same id", () =>
    Effect.gen(function*() {
      const calls = yield* callsOf([
        { type: "tool-call", id: "a", name: "read", params: { path: "one" } },
        { type: "tool-call", id: "a", name: "write", params: { path: "two" } },
        { type: "tool-params-start", id: "a", name: "read" },
        { type: "tool-params-delta", id: "a", delta: "{\"path\":\"three\"}" },
        { type: "tool-params-end", id: "a" },
        { type: "tool-call", id: "a", name: "read", params: { path: "three" } }
      ])
      assert.deepEqual(calls, ["read {\"path\":\"one\"}", "write {\"path\":\"two\"}", "read {\"path\":\"three\"}"])
    }))

  it.effect("does not break the reply when no tool is declared", () =>
    Effect.gen(function*() {
      const calls = yield* callsOf([{ type: "tool-call", id: "a", name: "read", params: { path: "one" } }], [])
      assert.deepEqual(calls, ["read {\"path\":\"one\"}"])
    }))
})
