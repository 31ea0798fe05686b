/**
 * Replays saved samples: the styles over the embedded upstream, which serves only the recorded replies.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Path from "effect/Path"
import { SampleReplay } from "../admin/SelfClient.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { contractOfConversation } from "../contracts/contractOf.ts"
import { type Conversation, plainConversation, Text } from "../domain/Conversation.ts"
import { runSync } from "../domain/stream/cooperative.ts"
import { StyleHandlers } from "../styles/handlers.ts"
import { type PlayedStyle, replyPath } from "../styles/Style.ts"
import { GatewayServices, routerConfig } from "./services.ts"

const key = "replay"

/** Only the file services of the context: the replay must have its own router. */
const ownFiles = Effect.map(
  Effect.all([FileSystem.FileSystem, Path.Path]),
  ([files, path]) => Context.add(Context.make(FileSystem.FileSystem, files), Path.Path, path)
)

/** A handler that answers requests with samples of the folder `dir`, until the scope ends. */
const playerOf = Effect.fnUntraced(function*(dir: string) {
  const files = yield* ownFiles
  const { handler } = yield* Effect.acquireRelease(
    Effect.sync(() =>
      HttpRouter.toWebHandler(
        StyleHandlers.pipe(
          Layer.provide(GatewayServices),
          Layer.provide(ConfigStore.layerMemory({ keys: [key], samples: { dir } })),
          // The server's services include empty file services, so ours must override them.
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

/** A request for the reply of a sample. */
export interface ReplayRequest {
  readonly id: string
  readonly style: PlayedStyle
  readonly model: string
  readonly stream: boolean
  readonly tools: Conversation["tools"]
}

/**
 * The response that a caller of the style gets: the reply of a sample in the folder `dir`, or the style's error. The contract of the style
 * writes the request.
 */
export const playSample = Effect.fnUntraced(function*(
  { dir, id, model, stream, style, tools }: ReplayRequest & { readonly dir: string }
) {
  const handler = yield* playerOf(dir)
  const conversation = {
    ...plainConversation,
    turns: [{ role: "user", parts: [Text(`!replay ${id}`)] }],
    tools
  } as const
  const request = new Request(`http://localhost${replyPath(style, model, stream)}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: runSync(contractOfConversation(style)!.writeRequest(model, conversation, undefined, !stream))
  })
  return yield* Effect.promise(() => handler(request))
})

/** Replays samples of the configured folder. */
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
      playSample({ ...sample, dir: config.now().samples.dir, tools: [] }).pipe(
        Effect.map(HttpServerResponse.fromWeb),
        Effect.provideContext(files)
      )
  })
)
