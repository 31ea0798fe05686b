/**
 * The scripted provider as an `HttpClient` without a socket.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { Provider } from "../Provider.ts"
import type { Call, Head } from "./Call.ts"

/** Chunks per pull: enough to be cheap, few enough to notice a reader that left. */
const chunksPerPull = 64

const bodyText = (request: HttpClientRequest.HttpClientRequest): string => {
  const body = request.body
  switch (body._tag) {
    case "Uint8Array":
      return Buffer.from(body.body.buffer, body.body.byteOffset, body.body.byteLength).toString()
    case "Raw":
      return typeof body.body === "string" ? body.body : ""
    default:
      return ""
  }
}

const broken = (request: HttpClientRequest.HttpClientRequest): HttpClientError.HttpClientError =>
  new HttpClientError.HttpClientError({
    reason: new HttpClientError.TransportError({ request, description: "the connection was reset" })
  })

const untilStopped = (call: Call): Effect.Effect<void> =>
  Effect.callback((resume) => {
    call.onStop = () => resume(Effect.void)
  })

/** Silence until the call is stopped. */
const hang = (call: Call): Effect.Effect<void> =>
  Effect.suspend(() => {
    call.onSilence()
    return untilStopped(call)
  })

/** Waits `millis` milliseconds, or until the call is stopped. */
const pause = (call: Call, millis: number): Effect.Effect<void> =>
  millis === 0 ? Effect.yieldNow : Effect.raceFirst(Effect.sleep(millis), untilStopped(call))

/** Plays a call for one reader. */
class Player {
  private readonly call: Call
  private readonly request: HttpClientRequest.HttpClientRequest
  private next = 0

  constructor(call: Call, request: HttpClientRequest.HttpClientRequest) {
    this.call = call
    this.request = request
  }

  private readonly reset: Effect.Effect<never, HttpClientError.HttpClientError> = Effect.suspend(() => {
    this.call.end("broken")
    return Effect.fail(broken(this.request))
  })

  /** Plays the steps up to and including the head. */
  readonly head: Effect.Effect<Head, HttpClientError.HttpClientError> = Effect.suspend(() => {
    if (this.call.outcome === "aborted") return this.reset
    const step = this.call.steps[this.next++]
    switch (step?._tag) {
      case "Head":
        return Effect.succeed(step)
      case "Wait":
        return Effect.andThen(pause(this.call, step.millis), this.head)
      case "Hang":
        return Effect.andThen(hang(this.call), this.reset)
      default:
        return this.reset
    }
  })

  /** The next chunks without a pause between them. */
  readonly pull: Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, HttpClientError.HttpClientError> = Effect.suspend(
    () => {
      const { steps } = this.call
      if (this.call.outcome === "aborted") return this.reset
      const chunks: Array<Uint8Array> = []
      while (this.call.outcome === "open" && this.next < steps.length && chunks.length < chunksPerPull) {
        const step = steps[this.next]!
        if (step._tag !== "Chunk") {
          if (chunks.length > 0) break
          this.next++
          if (step._tag === "Wait") return Effect.andThen(pause(this.call, step.millis), this.pull)
          return step._tag === "Hang" ? Effect.andThen(hang(this.call), this.pull) : this.reset
        }
        this.next++
        chunks.push(step.bytes)
        this.call.onProgress(step.sent)
      }
      if (Arr.isArrayNonEmpty(chunks)) return Effect.succeed(chunks)
      this.call.end("finished")
      return Cause.done()
    }
  )
}

/** A client whose requests all go to `provider`, whatever their host. Bodies are bytes or text. */
export const makeClient = (provider: Provider): HttpClient.HttpClient =>
  HttpClient.make((request, url, signal) =>
    Effect.suspend(() => {
      const call = provider.handle({
        method: request.method,
        path: url.pathname,
        query: url.search.slice(1),
        authorization: request.headers["authorization"],
        body: bodyText(request)
      })
      signal.addEventListener("abort", () => call.stop("aborted"), { once: true })
      const player = new Player(call, request)
      return Effect.map(player.head, ({ status, headers }) =>
        HttpServerResponse.toClientResponse(
          HttpServerResponse.stream(Stream.fromPull(Effect.succeed(player.pull)), { status, headers }),
          { request }
        ))
    })
  )
