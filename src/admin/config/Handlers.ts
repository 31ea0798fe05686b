/**
 * Serves the static configuration. Its lists may be long, so they are read and written in slices.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { ConfigOrigin } from "../../config/ConfigOrigin.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer, type Imported } from "../../config/ConfigTransfer.ts"
import { endingGenerated, type KeysSaved } from "../../config/entries/endedKey.ts"
import { forEachCooperatively, isJsonObject } from "../../config/json.ts"
import { jsonText } from "../../http/reply.ts"
import { makeLarge } from "../../http/WorkLimit.ts"
import { viewAccount } from "../accounts/view.ts"
import { jsonObjectBodyOf } from "../adminBody.ts"
import { changed, endedOf, lastingOf, savedOr } from "../changes.ts"
import { adminHandlers, respondInSlices } from "../handlers.ts"
import { AdminConfigGroup, ConfigReply, ConfigRequest, ListsRequest } from "./Api.ts"
import { importChanges } from "./importChanges.ts"
import { readImport, replaceParts } from "./requests.ts"

// The reply of `GET /admin/config` may be sent back.
const readParts = jsonObjectBodyOf([ConfigRequest, ConfigReply])
const readLists = jsonObjectBodyOf([ListsRequest, ConfigReply])
const readConfig = jsonObjectBodyOf([])

/** The accounts without fields that are `null`: those count as absent. */
const givenAccounts = Effect.fnUntraced(function*(accounts: Schema.Json) {
  if (!Array.isArray(accounts)) return accounts
  const given: Array<Schema.Json> = []
  yield* forEachCooperatively(accounts, (account) => {
    given.push(
      isJsonObject(account)
        ? Object.fromEntries(Object.entries(account).filter(([, value]) => value !== null))
        : account
    )
  })
  return given
})

const importCounts = (imported: Imported & KeysSaved) => ({
  imported_keys: imported.imported_keys,
  imported_accounts: imported.imported_accounts,
  warnings: imported.warnings,
  ...endedOf(imported),
  ...lastingOf(imported)
})

/** Bytes that an account and a key take while an export is made, about: as text in three forms, and in the reply. */
const exportedAccount = 1024
const exportedKey = 512

/** Bytes that an account and a key take while the configuration is shown, about: as a view and in the reply. */
const shownAccount = 1024
const shownKey = 128

export const AdminConfigHandlers = adminHandlers(AdminConfigGroup, function*() {
  const store = yield* ConfigStore
  const origin = yield* ConfigOrigin
  const { exportConfig, importConfig } = yield* ConfigTransfer

  const exported = Effect.flatMap(store.current, ({ accounts, configured_keys }) =>
    makeLarge(
      accounts.length * exportedAccount + configured_keys.length * exportedKey,
      Effect.map(
        exportConfig,
        ({ base64, json }) =>
          // `json` is the configuration's own text, so that it need not be written twice.
          jsonText(`{"success":true,"config":${json},"json":${JSON.stringify(json)},"base64":"${base64}"}`)
      )
    ))

  return {
    get: Effect.fnUntraced(function*({ endpoint, query }) {
      const config = yield* store.current
      const shows = query.accounts !== "false"
      const bytes = (shows ? config.accounts.length * shownAccount : 0) + config.configured_keys.length * shownKey
      return yield* makeLarge(
        bytes,
        Effect.gen(function*() {
          const accounts: Array<ReturnType<typeof viewAccount>> = []
          if (shows) {
            yield* forEachCooperatively(config.accounts, (account) => {
              accounts.push(viewAccount(account, config))
            })
          }
          return yield* respondInSlices(endpoint, {
            keys: config.configured_keys,
            ...(config.generated_key === undefined ? {} : { generated_key: config.generated_key }),
            ...origin.source,
            locked: yield* origin.locked,
            config_writable: yield* origin.configWritable,
            ...(shows ? { accounts } : {}),
            msgcompat_mapping: { fast: config.msgcompat_mapping.fast, slow: config.msgcompat_mapping.slow }
          })
        })
      )
    }),
    set: Effect.fnUntraced(function*({ request }) {
      const body = yield* readParts(request)
      const saved = yield* changed(
        "the configuration was changed",
        endingGenerated(store, store.update((raw, config) => replaceParts(raw, config, body)))
      )
      return {
        success: true,
        message: "The configuration is in effect",
        total_keys: saved.config.configured_keys.length,
        total_accounts: saved.config.accounts.length,
        warnings: [],
        ...endedOf(saved),
        ...lastingOf(saved)
      }
    }),
    import: Effect.fnUntraced(function*({ query, request }) {
      const body = yield* readConfig(request)
      const { config, mode } = yield* Effect.fromResult(readImport(body, query.mode))
      const dryRun = query.dry_run === "true"
      const before = yield* store.current
      const importing = endingGenerated(store, importConfig(config, mode, { dryRun }))
      const imported = yield* dryRun
        ? savedOr(importing)
        : changed(`a configuration was imported (${mode})`, importing)
      return {
        success: true,
        mode,
        message: `Taken by ${mode}: ${imported.imported_keys} keys, ${imported.imported_accounts} accounts`,
        ...importCounts(imported),
        changes: yield* importChanges(before, imported.config)
      }
    }),
    export: () => exported,
    exportShort: () => exported,
    importLists: Effect.fnUntraced(function*({ request }) {
      const body = yield* readLists(request)
      const { accounts, keys } = body
      const imported = yield* changed(
        "keys and accounts were imported",
        endingGenerated(
          store,
          importConfig(
            {
              ...(keys === undefined ? {} : { keys }),
              ...(accounts === undefined ? {} : { accounts: yield* givenAccounts(accounts) })
            },
            "merge"
          )
        )
      )
      return { success: true, ...importCounts(imported) }
    })
  }
})
