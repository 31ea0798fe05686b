/**
 * Replays saved samples: the styles over a driver that reads the recorded reply.
 *
 * The bytes pass through the driver of their protocol, so the reply is the same as when they were recorded.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Path from "effect/Path"
import { SampleReplay } from "../admin/SelfClient.ts"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { contractOfConversation } from "../contracts/contractOf.ts"
import { answerer, isServer } from "../contracts/drivers.ts"
import { accepted, turnedAway } from "../contracts/session/writeReply.ts"
import { type Conversation, plainConversation, Text } from "../domain/Conversation.ts"
import { runSync } from "../domain/stream/cooperative.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { type Recording, SampleFolder } from "../recordings/SampleFolder.ts"
import { StyleHandlers } from "../styles/handlers.ts"
import { type PlayedStyle, replyPath } from "../styles/Style.ts"
import type { Exchanges } from "../upstream/Exchange.ts"
import { makers } from "../upstream/protocols.ts"
import { answeredExchanges } from "../upstream/transports/answered.ts"
import { type Driver, sendsNothing } from "../upstream/Upstream.ts"
import { Upstreams } from "../upstream/Upstreams.ts"
import { gatewayServices, routerConfig } from "./services.ts"

const key = "replay"

const exhausted = turnedAway(50000, "the recording has no other round")

/** Exchanges of one completion, answered with the recorded rounds in order. */
const replayExchanges = ({ protocol, rounds }: Recording, deadlines: Deadlines["Service"]): Exchanges["Service"] => {
  let next = 0
  return answeredExchanges(deadlines, ({ method, path }) => {
    // A server is asked for a reply in one request; the session protocol has others before it.
    const isRound = isServer(protocol) ? method === "POST" : /\/(?:completion|continue)$/.test(path)
    if (!isRound) return accepted({ id: crypto.randomUUID() })
    const { bytes, contentType, status } = rounds[next++] ?? {}
    if (status === undefined || bytes === undefined) return exhausted
    // The round had no response.
    return status === 0
      ? undefined
      : { status, headers: contentType === undefined ? {} : { "content-type": contentType }, body: bytes }
  })
}

/** Recorded replies are in memory, so each wait is short. Milliseconds. */
const limits = { firstByte: 10_000, silence: 10_000 }

/** A driver whose every completion is the recording; without one it refuses. */
const replayDriver = (recording: Recording | undefined, deadlines: Deadlines["Service"]): Driver => ({
  name: answerer,
  contract: undefined,
  isAnonymous: true,
  sends: sendsNothing,
  models: [],
  secrets: [],
  capabilities: {},
  verify: () => Effect.void,
  complete: (request) => {
    if (recording === undefined) {
      const message = "There is no complete sample of this name"
      return Effect.fail(new UpstreamFailure({ phase: "completion", kind: "refused", status: 400, message }))
    }
    const options = { baseUrl: "http://recording/v1", models: [], furtherModels: [], limits }
    const driver = makers[recording.protocol](replayExchanges(recording, deadlines), options)
    // Recorded session ids are unknown to every upstream; do not report them for clean-up.
    return Effect.map(
      driver.complete({ ...request, onSession: undefined }),
      ({ events, id }) => ({ id, sessionId: undefined, events })
    )
  }
})

/** The sample `id` of the configured folder as the only upstream. */
const recorded = (id: string) =>
  Layer.unwrap(
    Effect.map(
      Effect.all([Deadlines, Effect.flatMap(SampleFolder, (folder) => folder.read(id))]),
      ([deadlines, recording]) => Upstreams.layerOf(replayDriver(recording, deadlines))
    )
  )

/** Only the file services of the context: the replay must have its own router. */
const ownFiles = Effect.map(
  Effect.all([FileSystem.FileSystem, Path.Path]),
  ([files, path]) => Context.add(Context.make(FileSystem.FileSystem, files), Path.Path, path)
)

/** A handler that answers requests with the sample `id` of the folder `dir`, until the scope ends. */
const playerOf = Effect.fnUntraced(function*(dir: string, id: string) {
  const files = yield* ownFiles
  const { handler } = yield* Effect.acquireRelease(
    Effect.sync(() =>
      HttpRouter.toWebHandler(
        StyleHandlers.pipe(
          Layer.provide(gatewayServices(recorded(id))),
          Layer.provide(ConfigStore.layerMemory({ keys: [key], samples: { dir } })),
          // The server's services include empty file services, so ours must override them.
          Layer.provide([
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
  const handler = yield* playerOf(dir, id)
  const conversation = { ...plainConversation, turns: [{ role: "user", parts: [Text("Replay")] }], tools } as const
  const request = new Request(`http://localhost${replyPath(style, model, stream)}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    // One word and the tools of a sample: nothing that takes slices.
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
