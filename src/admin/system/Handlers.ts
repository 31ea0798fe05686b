/**
 * Serves version, nodes and self-test. A failed lookup of the latest release is part of the version's reply, not an error.
 */
import * as Effect from "effect/Effect"
import * as SemVer from "effect/SemVer"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { adminBodyOf } from "../adminBody.ts"
import { adminHandlers } from "../handlers.ts"
import { Nodes } from "../nodes/Nodes.ts"
import { chatRequest, SelfClient } from "../SelfClient.ts"
import { AdminNodesGroup, AdminSelfTestGroup, AdminVersionGroup } from "./Api.ts"
import { buildInfo, currentVersion, runtime, versionSource } from "./build.ts"
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

export const AdminVersionHandlers = adminHandlers(AdminVersionGroup, function*() {
  const latest = yield* LatestRelease
  return {
    version: () =>
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
      })
  }
})

export const AdminNodesHandlers = adminHandlers(AdminNodesGroup, function*() {
  const nodes = yield* Nodes
  return {
    nodes: () =>
      Effect.map(nodes.list, (list) => ({
        success: true,
        node: nodes.id,
        store: nodes.store() ?? null,
        nodes: list
      }))
  }
})

const readTest = adminBodyOf(AdminSelfTestGroup.endpoints.test)

export const AdminSelfTestHandlers = adminHandlers(AdminSelfTestGroup, function*() {
  const self = yield* SelfClient
  const store = yield* ConfigStore
  return {
    test: Effect.fnUntraced(function*({ request }) {
      const body = yield* readTest(request)
      const chat = yield* Effect.fromResult(chatRequest(body, (yield* store.current).keys, false))
      const response = yield* Effect.orDie(self.execute(chat.request))
      const json = yield* response.json.pipe(Effect.catch(() => Effect.orElseSucceed(response.text, () => "")))
      return {
        success: response.status >= 200 && response.status < 300,
        status_code: response.status,
        response: json
      }
    })
  }
})
