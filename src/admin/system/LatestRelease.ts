/**
 * The latest public release, read from `GATEWAY_RELEASES_URL` (a GitHub-style latest-release document) and cached.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as SemVer from "effect/SemVer"
import { optional } from "../../domain/schemas.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { AdminEnvironment } from "../AdminEnvironment.ts"
import { currentVersion } from "./build.ts"

/** A published release. */
interface Release {
  readonly tag: string
  readonly version: SemVer.SemVer
  readonly url: string | undefined
  readonly publishedAt: string | undefined
  /** Milliseconds since 1970. */
  readonly checkedAt: number
}

/** The lookup failed. */
class ReleaseUnknown extends Schema.TaggedError<ReleaseUnknown>()("ReleaseUnknown", {
  message: Schema.String,
  checkedAt: Schema.Number
}) {}

/** Behaviour "Version". */
const longestLookup = "4 seconds"
/** Milliseconds. */
const cacheFound = 3_600_000
/** A failure is cached too, so that a console that polls every second does not reach the server each time. */
const cacheUnknown = 60_000
const mostRedirects = 3

const Document = Schema.Struct({
  tag_name: Schema.String,
  html_url: optional(Schema.String),
  published_at: optional(Schema.String)
})
const decodeDocument = Schema.decodeUnknownResult(Schema.fromJsonString(Document))

/** The version that a tag names: `1.2.3`, with a `v` or a name before it. */
const versionOf = (tag: string): Result.Result<SemVer.SemVer, SemVer.SemVerError> =>
  SemVer.parse(tag.trim().replace(/^(?:.*[-/@])?v?(?=\d+\.\d+\.\d+)/i, ""))

export class LatestRelease extends Context.Service<LatestRelease, {
  readonly get: Effect.Effect<Release, ReleaseUnknown>
}>()("model-gateway/admin/LatestRelease") {
  static readonly make = Effect.gen(function*() {
    const { releasesUrl } = yield* AdminEnvironment
    const client = HttpClient.followRedirects(yield* HttpClient.HttpClient, mostRedirects)

    const fetch = (url: string): Effect.Effect<Omit<Release, "checkedAt">, string> =>
      client.execute(
        HttpClientRequest.get(url, { acceptJson: true }).pipe(
          HttpClientRequest.setHeader("user-agent", `model-gateway/${currentVersion}`)
        )
      ).pipe(
        Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
        Effect.mapError(() => "the release server cannot be reached"),
        Effect.timeoutOrElse({
          duration: longestLookup,
          orElse: () => Effect.fail(`the release server did not answer within ${longestLookup}`)
        }),
        Effect.flatMap(({ status, text }) => {
          if (status !== 200) return Effect.fail(`the release server answered with HTTP ${status}`)
          const document = decodeDocument(text)
          if (Result.isFailure(document)) {
            return Effect.fail("the release server's answer is no latest-release document")
          }
          const { html_url, published_at, tag_name } = document.success
          const version = versionOf(tag_name)
          if (Result.isFailure(version)) return Effect.fail("the latest release's tag names no semantic version")
          return Effect.succeed({
            tag: tag_name,
            version: version.success,
            url: html_url ?? undefined,
            publishedAt: published_at ?? undefined
          })
        })
      )

    const lookUp = (url: string): Effect.Effect<Release, ReleaseUnknown> =>
      Effect.matchEffect(fetch(url), {
        onFailure: (message) =>
          Effect.flatMap(Clock.currentTimeMillis, (checkedAt) => new ReleaseUnknown({ message, checkedAt })),
        onSuccess: (found) => Effect.map(Clock.currentTimeMillis, (checkedAt) => ({ ...found, checkedAt }))
      })

    // Cached by the monotonic clock, so that a change of the wall clock does not matter.
    const one = yield* Semaphore.make(1)
    let known: { readonly exit: Exit.Exit<Release, ReleaseUnknown>; readonly until: number } | undefined
    const cached = (url: string) =>
      one.withPermit(Effect.gen(function*() {
        const clock = yield* Clock.Clock
        if (known === undefined || monotonicMillis(clock) >= known.until) {
          const exit = yield* Effect.exit(lookUp(url))
          known = { exit, until: monotonicMillis(clock) + (Exit.isSuccess(exit) ? cacheFound : cacheUnknown) }
        }
        return yield* known.exit
      }))

    const notConfigured = Effect.flatMap(
      Clock.currentTimeMillis,
      (checkedAt) =>
        new ReleaseUnknown({ message: "GATEWAY_RELEASES_URL is not set: no release was looked up", checkedAt })
    )

    return LatestRelease.of({ get: releasesUrl === undefined ? notConfigured : cached(releasesUrl) })
  })

  static readonly layer: Layer.Layer<LatestRelease, never, HttpClient.HttpClient> = Layer.effect(
    LatestRelease,
    LatestRelease.make
  )
}
