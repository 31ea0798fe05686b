/**
 * The static configuration at work. Lists may be long, so replies are put together in slices and not by a schema.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as Schema from "effect/Schema"
import { ConfigStore, type Imported } from "../../config/ConfigStore.ts"
import { forEachSliced, isJsonObject } from "../../config/json.ts"
import { apiId, jsonText, respond } from "../../http/reply.ts"
import { viewAccount } from "../accountView.ts"
import { jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf } from "../changes.ts"
import { savedOr } from "../configErrors.ts"
import { respondInSlices } from "../respondInSlices.ts"
import { AdminConfigGroup, ConfigReply, ConfigRequest, ListsRequest } from "./Api.ts"
import { readImport } from "./importRequest.ts"
import { replaceParts } from "./replaceParts.ts"

// What `GET /admin/config` shows may be sent back.
const readParts = jsonObjectBodyOf([ConfigRequest, ConfigReply])
const readLists = jsonObjectBodyOf([ListsRequest, ConfigReply])
const readConfig = jsonObjectBodyOf([])

/** Accounts without the fields that are `null`: such a field is not given. */
const givenAccounts = Effect.fnUntraced(function*(accounts: Schema.Json) {
  if (!Array.isArray(accounts)) return accounts
  const given: Array<Schema.Json> = []
  yield* forEachSliced(accounts, (account) => {
    given.push(
      isJsonObject(account)
        ? Object.fromEntries(Object.entries(account).filter(([, value]) => value !== null))
        : account
    )
  })
  return given
})

const importCounts = (imported: Imported) => ({
  imported_keys: imported.imported_keys,
  imported_accounts: imported.imported_accounts,
  warnings: imported.warnings,
  ...lastingOf(imported)
})

export const AdminConfigHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminConfigGroup),
  "admin-config",
  Effect.fnUntraced(function*(handlers) {
    const store = yield* ConfigStore

    const exported = Effect.map(
      store.exportConfig,
      ({ base64, json }) =>
        // `json` is the configuration's own text, so that it need not be written twice.
        jsonText(`{"success":true,"config":${json},"json":${JSON.stringify(json)},"base64":"${base64}"}`)
    )

    return handlers
      .handle(
        "get",
        Effect.fnUntraced(function*({ endpoint }) {
          const config = yield* store.current
          const accounts: Array<ReturnType<typeof viewAccount>> = []
          yield* forEachSliced(config.accounts, (account) => {
            accounts.push(viewAccount(account))
          })
          return yield* respondInSlices(endpoint, {
            keys: config.configured_keys,
            ...(config.generated_key === undefined ? {} : { generated_key: config.generated_key }),
            ...store.source,
            config_writable: yield* store.configWritable,
            accounts,
            msgcompat_mapping: { fast: config.msgcompat_mapping.fast, slow: config.msgcompat_mapping.slow }
          })
        })
      )
      .handleRaw(
        "set",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const body = yield* readParts(request)
          const saved = yield* changed(
            "the configuration was changed",
            store.update((raw, config) => replaceParts(raw, config, body))
          )
          return respond(endpoint, {
            success: true,
            message: "The configuration is in effect",
            total_keys: saved.config.configured_keys.length,
            total_accounts: saved.config.accounts.length,
            warnings: [],
            ...lastingOf(saved)
          })
        })
      )
      .handleRaw(
        "import",
        Effect.fnUntraced(function*({ endpoint, query, request }) {
          const body = yield* readConfig(request)
          const { config, mode } = yield* Effect.fromResult(readImport(body, query.mode))
          const dryRun = query.dry_run === "true"
          const importing = store.importConfig(config, mode, { dryRun })
          const imported = yield* dryRun
            ? savedOr(importing)
            : changed(`a configuration was imported (${mode})`, importing)
          return respond(endpoint, {
            success: true,
            mode,
            message: `Taken by ${mode}: ${imported.imported_keys} keys, ${imported.imported_accounts} accounts`,
            ...importCounts(imported)
          })
        })
      )
      .handle("export", () => exported)
      .handle("exportShort", () => exported)
      .handleRaw(
        "importLists",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const body = yield* readLists(request)
          const { accounts, keys } = body
          const imported = yield* changed(
            "keys and accounts were imported",
            store.importConfig(
              {
                ...(keys === undefined ? {} : { keys }),
                ...(accounts === undefined ? {} : { accounts: yield* givenAccounts(accounts) })
              },
              "merge"
            )
          )
          return respond(endpoint, { success: true, ...importCounts(imported) })
        })
      )
  })
)
