/**
 * The accounts of the configuration: adding, marking and removing them (spec "Admin endpoints").
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { identityKeys } from "../../domain/identity.ts"
import type { Account } from "../Account.ts"
import { ofEntry } from "../ConfigError.ts"
import { ConfigStore, type Saved, type UpdateError, type UpdateOptions } from "../ConfigStore.ts"
import type { GatewayConfig } from "../GatewayConfig.ts"
import { type RawConfig, sha256Hex } from "../json.ts"
import { accountsOf } from "../rawConfig.ts"
import {
  accountIn,
  type AccountMarks,
  markAccount,
  markNames,
  type NewAccount,
  newAccount,
  withSecrets
} from "./accountEdits.ts"

const alreadyExists = invalidRequest("The account already exists")

/** The accounts after one was added or marked. */
export interface AccountSaved extends Saved {
  /** `undefined` if an edit at the same time has removed it. */
  readonly account: Account | undefined
}

/**
 * The accounts of the configuration, named by any spelling of their identifiers. A change fails with `not_found` for an unknown account, with
 * `invalid_request` for a wrong value or for a name that accounts of several upstreams have, and otherwise as `ConfigStore.update` does.
 */
export class AccountEntries extends Context.Service<AccountEntries, {
  /** Adds an account with what it logs in with, or with a token. Fails for an account that already exists. */
  readonly add: (
    account: NewAccount,
    options?: UpdateOptions
  ) => Effect.Effect<AccountSaved, UpdateError | GatewayError>
  /** Changes marks of an account or what it logs in with, at least one. Another token is another name of an account without a login. */
  readonly mark: (
    identifier: string,
    marks: AccountMarks,
    options?: UpdateOptions
  ) => Effect.Effect<AccountSaved, UpdateError | GatewayError>
  readonly remove: (identifier: string, options?: UpdateOptions) => Effect.Effect<Saved, UpdateError | GatewayError>
}>()("model-gateway/config/AccountEntries") {
  static readonly layer: Layer.Layer<AccountEntries, never, ConfigStore> = Layer.effect(
    AccountEntries,
    Effect.map(ConfigStore, (store) => {
      /** Updates one entry, which `edit` says the place of. Its faults have the fields of the entry. */
      const updated = (
        edit: (
          raw: RawConfig,
          config: GatewayConfig,
          at: (place: number) => void
        ) => Effect.Effect<RawConfig, GatewayError>,
        options: UpdateOptions | undefined
      ) =>
        Effect.suspend(() => {
          let place = -1
          const at = (is: number) => {
            place = is
          }
          return Effect.mapError(
            store.update((raw, config) => edit(raw, config, at), options),
            (error) => ofEntry(`accounts[${place}]`)(error)
          )
        })

      /** Edits the entry of an account; `undefined` removes it. Fails where another account has the name that the entry has now. */
      const edited = (
        identifier: string,
        edit: (entry: RawConfig) => Result.Result<RawConfig | undefined, GatewayError>,
        options: UpdateOptions | undefined
      ) =>
        updated((raw, config, at) => {
          const found = accountIn(config.account_table, identifier)
          if (Result.isFailure(found)) return Effect.fail(found.failure)
          const entries = accountsOf(raw)
          const place = config.accounts.indexOf(found.success)
          at(place)
          const outcome = edit(entries[place]!)
          if (Result.isFailure(outcome)) return Effect.fail(outcome.failure)
          const entry = outcome.success
          if (entry === entries[place]) return Effect.succeed(raw)
          const isTaken = entry !== undefined &&
            identityKeys(entry, sha256Hex).some((key) =>
              (config.account_table.index.get(key) ?? found.success) !== found.success
            )
          if (isTaken) return Effect.fail(alreadyExists)
          const accounts = entry === undefined ? entries.toSpliced(place, 1) : entries.with(place, entry)
          return Effect.succeed({ ...raw, accounts })
        }, options)

      return {
        add: Effect.fnUntraced(function*(account, options) {
          const entry = yield* Effect.fromResult(newAccount(account))
          const identity = identityKeys(entry, sha256Hex)
          const saved = yield* updated((raw, config, at) => {
            const entries = accountsOf(raw)
            at(entries.length)
            return identity.some((key) => config.account_table.index.has(key))
              ? Effect.fail(alreadyExists)
              : Effect.succeed({ ...raw, accounts: [...entries, entry] })
          }, options)
          return { ...saved, account: saved.config.account_table.index.get(identity[0]!) }
        }),
        mark: Effect.fnUntraced(function*(identifier, marks, options) {
          if (Object.values(marks).every((mark) => mark === undefined)) {
            return yield* invalidRequest(`At least one of ${markNames.join(", ")} is required`, "disabled")
          }
          let named: string | undefined
          const saved = yield* edited(identifier, (entry) =>
            Result.map(withSecrets(entry, marks), (changed) => {
              ;[named] = identityKeys(changed, sha256Hex)
              return markAccount(changed, marks)
            }), options)
          return { ...saved, account: saved.config.account_table.index.get(named ?? "") }
        }),
        remove: (identifier, options) => edited(identifier, () => Result.succeed(undefined), options)
      }
    })
  )
}
