/**
 * Serves the upstreams: their views, changes, tests and models.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ConfigInvalid } from "../../config/ConfigError.ts"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import type { GatewayConfig, UpstreamConfig } from "../../config/GatewayConfig.ts"
import { shownAddress, shownEntry, shownProxy, withoutSecrets } from "../../config/hidden.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { formatTimestamp } from "../../domain/time.ts"
import { placeOfUpstream } from "../../domain/upstreamNames.ts"
import { type ServerFinding, ServerFindings } from "../../upstream/ServerFindings.ts"
import { adminBodyOf, given, headerText, jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf, logChange, revisionIn, savedOr } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { AddUpstreamRequest, AdminUpstreamsGroup, ChangeUpstreamRequest, type UpstreamItem } from "./Api.ts"
import {
  addUpstream,
  changeUpstream,
  draftName,
  entryOf,
  idsByModel,
  type Naming,
  removeUpstream,
  unknownUpstream
} from "./edit.ts"
import { credentialOf, noCredential, reachesSaved, type TestCredential, UpstreamTests } from "./UpstreamTests.ts"
import { type UpstreamLive, UpstreamViews } from "./UpstreamViews.ts"

const { endpoints } = AdminUpstreamsGroup
const readUpstream = jsonObjectBodyOf([AddUpstreamRequest])
const readChanges = jsonObjectBodyOf([ChangeUpstreamRequest])
const readTest = adminBodyOf(endpoints.test)
const readTestChanges = adminBodyOf(endpoints.testChanges, { mayBeEmpty: true })

type Shown = { readonly raw: RawConfig; readonly config: GatewayConfig }

const viewUpstream = (
  { config, raw }: Shown,
  { cooled_ms, ...live }: UpstreamLive,
  findings: ReadonlyArray<ServerFinding>,
  now: number
): ReadonlyArray<typeof UpstreamItem.Type> => {
  const upstream = config.upstreams.get(live.name)
  if (upstream === undefined) return []
  const { base_url, driver, enabled, name, proxy } = upstream
  return [{
    ...live,
    driver,
    base_url: shownAddress(base_url),
    enabled,
    models: Array.from(config.route_table.upstreams.get(name)?.values() ?? [], ({ model }) => model.id),
    cooled_until: cooled_ms === null ? null : formatTimestamp(now + cooled_ms),
    findings: findings.flatMap(({ message, upstream }) => upstream === name ? message : []),
    proxy: shownProxy(proxy) ?? null,
    config: shownEntry(entryOf(raw, name))
  }]
}

/** The credential of a test's body; `undefined` if it has none. */
const credentialIn = Effect.fnUntraced(function*(
  body: Partial<Record<"key" | "email" | "mobile" | "password", string | null>>
): Effect.fn.Return<TestCredential | undefined, GatewayError> {
  const [key, email, mobile] = [given(body.key), given(body.email), given(body.mobile)]
  yield* Effect.fromResult(headerText(key ?? "", "key"))
  const password = body.password || undefined
  if (key === undefined && email === undefined && mobile === undefined) return undefined
  if (key === undefined && password === undefined) return yield* invalidRequest("password is required", "password")
  return { key, login: password === undefined ? undefined : { email, mobile, password } }
})

/** The address of an upstream as the history shows it. */
const addressOf = (upstream: UpstreamConfig | undefined): string | null =>
  upstream === undefined ? null : shownAddress(upstream.base_url)

/** A rejected draft, with the places of the request's body. */
const placedIn = <E>(place: string, entry: string, error: E): E | ConfigInvalid =>
  error instanceof ConfigInvalid
    ? ConfigInvalid.of(
      error.faults.map(({ field, message }) => ({
        field: field.startsWith(entry) ? `${place}${field.slice(entry.length)}` : field,
        message: message.startsWith(entry) ? `${place}${message.slice(entry.length)}` : message
      }))
    )
    : error

const objectOf = (value: unknown): RawConfig => isJsonObject(value) ? value : {}

export const AdminUpstreamsHandlers = adminHandlers(AdminUpstreamsGroup, function*() {
  const store = yield* ConfigStore
  const { configHash } = yield* ConfigTransfer
  const views = yield* UpstreamViews
  const tests = yield* UpstreamTests
  const servers = yield* ServerFindings

  const current = Effect.gen(function*() {
    return { raw: yield* store.currentRaw, config: yield* store.current }
  })

  const itemsOf = Effect.gen(function*() {
    const { live, missing } = yield* views.now
    const shown = yield* current
    const now = yield* Clock.currentTimeMillis
    return { items: live.flatMap((each) => viewUpstream(shown, each, servers.now(), now)), missing }
  })

  const savedItem = Effect.fnUntraced(function*(saved: Saved, name: string) {
    const upstream = (yield* itemsOf).items.find((item) => item.name === name)
    if (upstream === undefined) return yield* unknownUpstream
    return { success: true, upstream, ...lastingOf(saved) }
  })

  /** A saved upstream, and what its first enabled account shows, of one configuration. */
  const configured = Effect.fnUntraced(function*(name: string) {
    const config = store.now()
    const upstream = config.upstreams.get(name)
    if (upstream === undefined) return yield* unknownUpstream
    return { upstream, credential: credentialOf(config, name) }
  })

  /** The upstream after a change that is checked and not saved. */
  const drafted = Effect.fnUntraced(function*(
    name: string,
    edit: (raw: RawConfig, config: GatewayConfig) => Result.Result<RawConfig, GatewayError>
  ) {
    const draft = store.update((raw, config) => Effect.fromResult(edit(raw, config)), { dryRun: true })
    const { config } = yield* savedOr(
      Effect.mapError(draft, (error) => placedIn("upstream", `upstreams.${name}`, error))
    )
    return config.upstreams.get(name) ?? (yield* unknownUpstream)
  })

  /** Tests an upstream. The history has it first, as the credential may go anywhere. */
  const tested = Effect.fnUntraced(function*(
    place: string,
    saved: UpstreamConfig | undefined,
    upstream: UpstreamConfig,
    credential: TestCredential
  ) {
    const [before, after] = [addressOf(saved), addressOf(upstream)]
    yield* logChange("an upstream was tested", { fields: [{ path: `${place}base_url`, before, after }] })
    return yield* tests.test(upstream, credential)
  })

  return {
    list: Effect.fnUntraced(function*() {
      const { items, missing } = yield* itemsOf
      return { upstreams: items, revision: yield* configHash, ...missing }
    }),
    add: Effect.fnUntraced(function*({ headers, request }) {
      const body = yield* readUpstream(request)
      const saved = yield* changed(
        "an upstream was added",
        store.update((raw, config) => Effect.fromResult(addUpstream(raw, config, body)), {
          expected: revisionIn(headers["if-match"])
        })
      )
      return yield* savedItem(saved, String(body["name"]))
    }),
    change: Effect.fnUntraced(function*({ headers, params: { name }, request }) {
      const body = yield* readChanges(request)
      const saved = yield* changed(
        "an upstream was changed",
        store.update((raw, config) => Effect.fromResult(changeUpstream(raw, config, name, body)), {
          expected: revisionIn(headers["if-match"])
        })
      )
      return yield* savedItem(saved, name)
    }),
    remove: Effect.fnUntraced(function*({ headers, params: { name }, query }) {
      let removed: Naming = { accounts: [], targets: [], routes: [] }
      const saved = yield* changed(
        "an upstream was removed",
        store.update(
          (raw, config) =>
            Effect.map(removeUpstream(raw, config, name, query.force === "true"), (removal) => {
              removed = removal.named
              return removal.raw
            }),
          { expected: revisionIn(headers["if-match"]) }
        )
      )
      return { success: true, removed, ...lastingOf(saved) }
    }),
    test: Effect.fnUntraced(function*({ request }) {
      const body = yield* readTest(request)
      const name = draftName(store.now())
      const upstream = yield* drafted(
        name,
        (raw, config) => addUpstream(raw, config, { ...objectOf(body.upstream), name })
      )
      return yield* tested("", undefined, upstream, (yield* credentialIn(body)) ?? noCredential)
    }),
    testChanges: Effect.fnUntraced(function*({ params: { name }, request }) {
      const body = yield* readTestChanges(request)
      const changes = objectOf(body.upstream)
      const given = yield* credentialIn(body)
      const draftFrom = (from?: (entry: RawConfig) => RawConfig) =>
        drafted(name, (raw, config) => changeUpstream(raw, config, name, changes, from))
      const draft = Object.keys(changes).length === 0 ? undefined : yield* draftFrom()
      const { credential, upstream: saved } = yield* configured(name)
      const place = `${placeOfUpstream(name)}.`
      if (draft === undefined || reachesSaved(draft, saved)) {
        return yield* tested(place, saved, draft ?? saved, given ?? credential)
      }
      // What is saved for one server goes to no other one.
      return yield* tested(place, saved, yield* draftFrom(withoutSecrets), given ?? noCredential)
    }),
    models: Effect.fnUntraced(function*({ params: { name } }) {
      const { credential, upstream } = yield* configured(name)
      const listed = yield* tests.list(upstream, credential)
      const lastListed = store.now().route_table.config.listed?.get(name)?.values() ?? []
      const names = new Set(Result.getOrElse(listed, () => Array.from(lastListed, ({ id }) => id)))
      const ids = idsByModel(upstream.models)
      return {
        models: Array.from(new Set([...names, ...ids.keys()]), (model) => ({
          model,
          listed: names.has(model),
          ids: [...ids.get(model) ?? []]
        })),
        message: Result.isFailure(listed) ? listed.failure : null
      }
    })
  }
})
