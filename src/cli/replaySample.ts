/**
 * Plays a saved sample through a gateway in this process.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { ToolDeclaration } from "../domain/Conversation.ts"
import { GatewayRoutes, GatewayServices, routerConfig } from "../server/Gateway.ts"

/** The sample is not there, or its recorded replies make none. */
export class NotReplayed extends Schema.TaggedError<NotReplayed>()("NotReplayed", { message: Schema.String }) {}

interface Ask {
  readonly model: string
  readonly text: string
  readonly stream: boolean
  readonly tools: ReadonlyArray<ToolDeclaration>
}

/** The styles that stream. */
export type Style = "chat" | "responses" | "messages" | "generate"

const anyObject = { type: "object" }

const functions = ({ tools }: Ask) =>
  tools.map(({ description, name, parameters = anyObject }) => ({ name, description, parameters }))

/** The request that has the embedded upstream play a recording, in each style's words. */
const requests: { readonly [S in Style]: (ask: Ask) => readonly [path: string, body: unknown] } = {
  chat: (ask) => ["/v1/chat/completions", {
    model: ask.model,
    stream: ask.stream,
    messages: [{ role: "user", content: ask.text }],
    tools: functions(ask).map((tool) => ({ type: "function", function: tool }))
  }],
  responses: (ask) => ["/v1/responses", {
    model: ask.model,
    stream: ask.stream,
    input: ask.text,
    tools: functions(ask).map((tool) => ({ type: "function", ...tool }))
  }],
  messages: (ask) => ["/v1/messages", {
    model: ask.model,
    stream: ask.stream,
    max_tokens: 8192,
    messages: [{ role: "user", content: ask.text }],
    tools: functions(ask).map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters }))
  }],
  generate: (ask) => [
    `/v1beta/models/${encodeURIComponent(ask.model)}:${
      ask.stream ? "streamGenerateContent?alt=sse" : "generateContent"
    }`,
    {
      contents: [{ role: "user", parts: [{ text: ask.text }] }],
      tools: ask.tools.length === 0
        ? []
        : [{
          functionDeclarations: functions(ask).map(({ parameters, ...tool }) => ({
            ...tool,
            parametersJsonSchema: parameters
          }))
        }]
    }
  ]
}

const key = "replay"

/** A gateway in this process whose embedded upstream knows the samples of a folder. */
const gatewayOf = (dir: string) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      HttpRouter.toWebHandler(
        GatewayRoutes.pipe(
          Layer.provide(GatewayServices),
          Layer.provide(ConfigStore.layerMemory({ keys: [key], samples: { dir } })),
          Layer.provide([FetchHttpClient.layer, HttpServer.layerServices, NodeServices.layer, Logger.layer([])]),
          Layer.orDie
        ),
        { routerConfig, disableLogger: true }
      )
    ),
    ({ dispose }) => Effect.promise(dispose)
  )

/** The message of every style's error body. */
const errorMessage = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }))
)

/** Which sample to play, and how. */
export interface Replay extends Omit<Ask, "text"> {
  /** The folder of samples. */
  readonly dir: string
  readonly id: string
  readonly style: Style
}

/** The reply's bytes. Fails with what a caller would be told where there is no such sample. */
export const replaySample = ({ dir, id, style, ...ask }: Replay) =>
  Effect.gen(function*() {
    const { handler } = yield* gatewayOf(dir)
    const [route, body] = requests[style]({ ...ask, text: `!replay ${id}` })
    const request = new Request(`http://localhost${route}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    const response = yield* Effect.promise(() => handler(request))
    const failed = (message: string) => new NotReplayed({ message: `${id} in ${dir}: ${message}` })
    if (!response.ok) {
      const { error } = yield* Effect.orDie(errorMessage(yield* Effect.promise(() => response.text())))
      return yield* failed(error.message)
    }
    const reply = response.body
    return reply === null
      ? Stream.empty
      : Stream.fromReadableStream({ evaluate: () => reply, onError: (error) => failed(String(error)) })
  })
