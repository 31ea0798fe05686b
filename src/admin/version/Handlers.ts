/**
 * Version and update check at work. A lookup that fails is part of the reply, never an error of it.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as SemVer from "effect/SemVer"
import { apiId } from "../../http/reply.ts"
import { AdminVersionGroup } from "./Api.ts"
import { buildInfo, runtime } from "./buildInfo.ts"
import { currentVersion, versionSource } from "./currentVersion.ts"
import { LatestRelease } from "./LatestRelease.ts"

const current = SemVer.parseUnsafe(currentVersion)

const running = {
  success: true,
  current_version: currentVersion,
  current_tag: `v${currentVersion}`,
  source: versionSource,
  build: { commit: buildInfo.commit, date: buildInfo.date, ...runtime, form: buildInfo.form }
}

const isoTime = (millis: number): string => new Date(millis).toISOString()

export const AdminVersionHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminVersionGroup),
  "admin-version",
  Effect.fnUntraced(function*(handlers) {
    const latest = yield* LatestRelease
    return handlers.handle("version", () =>
      Effect.match(latest.get, {
        onFailure: ({ checkedAt, message }) => ({
          ...running,
          checked_at: isoTime(checkedAt),
          latest_tag: null,
          latest_version: null,
          release_url: null,
          published_at: null,
          has_update: false,
          check_error: message
        }),
        onSuccess: ({ checkedAt, publishedAt, tag, url, version }) => ({
          ...running,
          checked_at: isoTime(checkedAt),
          latest_tag: tag,
          latest_version: SemVer.format(version),
          release_url: url ?? null,
          published_at: publishedAt ?? null,
          has_update: SemVer.isGreaterThan(version, current)
        })
      }))
  })
)
