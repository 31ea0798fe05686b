/**
 * Serves the upstreams: their views, changes, tests and models.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Accounts } from "../../accounts/Accounts.ts"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { entryOf, unknownUpstream } from "../../config/entries/upstreamEdits.ts"
import { UpstreamEntries } from "../../config/entries/UpstreamEntries.ts"
import type { GatewayConfig, UpstreamConfig } from "../../config/GatewayConfig.ts"
import { shownAddress, shownEntry, shownProxy } from "../../config/hidden.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { needsAccounts } from "../../contracts/drivers.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { given, headerText } from "../../domain/givenText.ts"
import { aboutPart } from "../../domain/refusedParts.ts"
import { formatTimestamp, monotonicMillis } from "../../domain/time.ts"
import { placeOfUpstream } from "../../domain/upstreamNames.ts"
import { type Away, type ServerFinding, ServerFindings } from "../../upstream/ServerFindings.ts"
import { Upstreams } from "../../upstream/Upstreams.ts"
import { adminBodyOf, jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf, logChange, revisionIn, savedOr } from "../changes.ts"
import { viewBudgets } from "../contract.ts"
import { adminHandlers } from "../handlers.ts"
import { AddUpstreamRequest, AdminUpstreamsGroup, ChangeUpstreamRequest, type UpstreamItem } from "./Api.ts"
import { credentialOf, noCredential, reachesSaved, type TestCredential, UpstreamTests } from "./UpstreamTests.ts"
import { type UpstreamLive, UpstreamViews } from "./UpstreamViews.ts"

const { endpoints } = AdminUpstreamsGroup
const readUpstream = jsonObjectBodyOf([AddUpstreamRequest])
const readChanges = jsonObjectBodyOf([ChangeUpstreamRequest])
const readTest = adminBodyOf(endpoints.test)
const readTestChanges = adminBodyOf(endpoints.testChanges)

type Shown = { readonly raw: RawConfig; readonly config: GatewayConfig }

const viewUpstream = (
  { config, raw }: Shown,
  { budgets, cooled_ms, ...live }: UpstreamLive,
  findings: ReadonlyArray<ServerFinding>,
  away: ReadonlyMap<string, Away>,
  refusals: (typeof UpstreamItem.Type)["refusals"],
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
    needs_accounts: needsAccounts(driver) || config.accounts.some((account) => account.upstream === name),
    models: Array.from(config.route_table.upstreams.get(name)?.values() ?? [], ({ model }) => model.id),
    budgets: viewBudgets(budgets),
    cooled_until: cooled_ms === null ? null : formatTimestamp(now + cooled_ms),
    findings: findings.flatMap(({ message, upstream }) => upstream === name ? message : []),
    away: away.get(name) ?? null,
    refusals,
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

/** The ids of an upstream's models by the server's names. */
const idsByModel = (models: UpstreamConfig["models"]): ReadonlyMap<string, ReadonlyArray<string>> => {
  const ids = new Map<string, Array<string>>()
  for (const { id, model } of models) ids.set(model, [...ids.get(model) ?? [], id])
  return ids
}

/** The address of an upstream as the history shows it. */
const addressOf = (upstream: UpstreamConfig | undefined): string | null =>
  upstream === undefined ? null : shownAddress(upstream.base_url)

const objectOf = (value: unknown): RawConfig => isJsonObject(value) ? value : {}

export const AdminUpstreamsHandlers = adminHandlers(AdminUpstreamsGroup, function*() {
  const store = yield* ConfigStore
  const entries = yield* UpstreamEntries
  const { configHash } = yield* ConfigTransfer
  const views = yield* UpstreamViews
  const tests = yield* UpstreamTests
  const accounts = yield* Accounts
  const servers = yield* ServerFindings
  const upstreams = yield* Upstreams

  const current = Effect.gen(function*() {
    return { raw: yield* store.currentRaw, config: yield* store.current }
  })

  const itemsOf = Effect.gen(function*() {
    const { live, missing } = yield* views.now
    const shown = yield* current
    const clock = yield* Clock.Clock
    const now = yield* Clock.currentTimeMillis
    const drivers = yield* upstreams.all
    const monotonic = monotonicMillis(clock)
    const refusalsOf = (name: string) =>
      drivers.get(name)?.capabilities.refusals?.all(monotonic).map(({ model, part, until, words }) => ({
        model,
        effect: aboutPart(part),
        words,
        until: formatTimestamp(now + until - monotonic)
      })) ?? []
    const items = live.flatMap((each) =>
      viewUpstream(shown, each, servers.now(), servers.away(), refusalsOf(each.name), now)
    )
    return { items, missing }
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
    return { upstream, credential: yield* credentialOf(config, name, accounts) }
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
      const adding = entries.add(body, { expected: revisionIn(headers["if-match"]) })
      const saved = yield* changed("an upstream was added", adding)
      return yield* savedItem(saved, String(body["name"]))
    }),
    change: Effect.fnUntraced(function*({ headers, params: { name }, request }) {
      const changing = entries.change(name, yield* readChanges(request), { expected: revisionIn(headers["if-match"]) })
      return yield* savedItem(yield* changed("an upstream was changed", changing), name)
    }),
    remove: Effect.fnUntraced(function*({ headers, params: { name }, query }) {
      const options = { force: query.force === "true", expected: revisionIn(headers["if-match"]) }
      const saved = yield* changed("an upstream was removed", entries.remove(name, options))
      return { success: true, removed: saved.removed, ...lastingOf(saved) }
    }),
    test: Effect.fnUntraced(function*({ request }) {
      const body = yield* readTest(request)
      const upstream = yield* savedOr(entries.draft(objectOf(body.upstream)))
      return yield* tested("", undefined, upstream, (yield* credentialIn(body)) ?? noCredential)
    }),
    testChanges: Effect.fnUntraced(function*({ params: { name }, request }) {
      const body = yield* readTestChanges(request)
      const changes = objectOf(body.upstream)
      const given = yield* credentialIn(body)
      const draftOf = (withSecrets: boolean) => savedOr(entries.draftChange(name, changes, withSecrets))
      const draft = Object.keys(changes).length === 0 ? undefined : yield* draftOf(true)
      const { credential, upstream: saved } = yield* configured(name)
      const place = `${placeOfUpstream(name)}.`
      if (draft === undefined || reachesSaved(draft, saved)) {
        return yield* tested(place, saved, draft ?? saved, given ?? credential)
      }
      // What is saved for one server goes to no other one.
      return yield* tested(place, saved, yield* draftOf(false), given ?? noCredential)
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
