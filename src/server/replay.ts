/**
 * Plays saved samples: the styles over the embedded upstream, which answers with the recorded replies and nothing else.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Path from "effect/Path"
import { SampleReplay } from "../admin/samples/SampleReplay.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { ToolDeclaration } from "../domain/Conversation.ts"
import { apiId } from "../http/reply.ts"
import { ChatGroup } from "../styles/chat/Api.ts"
import { StyleEdges } from "../styles/edgeLayers.ts"
import { EmbeddingsGroup } from "../styles/embeddings/Api.ts"
import { GenerateGroup } from "../styles/generate/Api.ts"
import { MessagesGroup } from "../styles/messages/Api.ts"
import { ModelsGroup } from "../styles/models/Api.ts"
import { ResponsesGroup } from "../styles/responses/Api.ts"
import { GatewayServices, routerConfig } from "./services.ts"
import { StyleHandlers } from "./styles.ts"

/** The request that plays a recording. */
export interface Ask {
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

class StylesApi extends HttpApi.make(apiId).add(
  ChatGroup,
  ResponsesGroup,
  EmbeddingsGroup,
  MessagesGroup,
  GenerateGroup,
  ModelsGroup
) {}

/** Files and nothing else of what is around: a router, above all, must be the player's own. */
const ownFiles = Effect.map(
  Effect.all([FileSystem.FileSystem, Path.Path]),
  ([files, path]) => Context.add(Context.make(FileSystem.FileSystem, files), Path.Path, path)
)

/** Answers a request of a style with a sample of the folder `dir`, until the scope ends. */
const playerOf = Effect.fnUntraced(function*(dir: string) {
  const files = yield* ownFiles
  const { handler } = yield* Effect.acquireRelease(
    Effect.sync(() =>
      HttpRouter.toWebHandler(
        HttpApiBuilder.layer(StylesApi).pipe(
          Layer.provide(StyleHandlers),
          Layer.provide(StyleEdges),
          Layer.provide(GatewayServices),
          Layer.provide(ConfigStore.layerMemory({ keys: [key], samples: { dir } })),
          // The server's services have files too, which are none: ours come after them.
          Layer.provide([
            FetchHttpClient.layer,
            HttpServer.layerServices,
            Logger.layer([]),
            Layer.succeedContext(files)
          ]),
          Layer.orDie
        ),
        { routerConfig, disableLogger: true }
      )
    ),
    ({ dispose }) => Effect.promise(dispose)
  )
  return handler
})

/** What a caller of the style would get: the sample's reply, or the style's error. `text` is left out of `ask`. */
export const playSample = Effect.fnUntraced(function*(
  { dir, id, style, ...ask }: Omit<Ask, "text"> & { readonly dir: string; readonly id: string; readonly style: Style }
) {
  const handler = yield* playerOf(dir)
  const [route, body] = requests[style]({ ...ask, text: `!replay ${id}` })
  const request = new Request(`http://localhost${route}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  return yield* Effect.promise(() => handler(request))
})

/** Plays samples of the configured folder. */
export const SampleReplayLive: Layer.Layer<
  SampleReplay,
  never,
  ConfigStore | FileSystem.FileSystem | Path.Path
> = Layer.effect(
  SampleReplay,
  Effect.gen(function*() {
    const config = yield* ConfigStore
    const files = yield* ownFiles
    return (sample) =>
      playSample({ ...sample, dir: config.unsafeCurrent().samples.dir, tools: [] }).pipe(
        Effect.map(HttpServerResponse.fromWeb),
        Effect.provideContext(files)
      )
  })
)
