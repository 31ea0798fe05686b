/**
 * Batches of accounts: the result of each line, and the configuration after the batch. A refused line does not affect the
 * others.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { accountIn, markAccount, newAccount, unknownAccount } from "../../config/entries/accountEdits.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { forEachCooperatively, type RawConfig, sha256Hex } from "../../config/json.ts"
import { accountsOf } from "../../config/rawConfig.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { identifierOf, identityKeys } from "../../domain/identity.ts"
import { keyWithin, upstreamNamed } from "../../domain/upstreamNames.ts"
import { schemaFault } from "../../http/jsonBody.ts"
import { AddAccountRequest, type BatchResult } from "./Api.ts"

/** Bounds the lines of a batch. */
const mostLines = 20_000

const actions = ["enable", "disable", "delete"] as const

/** A batch; its lines are not validated yet. */
export interface Batch {
  readonly action: "add" | (typeof actions)[number]
  readonly lines: ReadonlyArray<unknown>
  readonly dryRun: boolean
}

/** Reads the request's body. Fails for a malformed batch; a fault of a line is reported in the line's result. */
export const readBatch = (body: RawConfig): Result.Result<Batch, GatewayError> => {
  const { action, dry_run } = body
  const known = action === "add" ? action : actions.find((name) => name === action)
  if (known === undefined) {
    return Result.fail(invalidRequest("action must be add, enable, disable or delete", "action"))
  }
  if (dry_run !== undefined && dry_run !== null && typeof dry_run !== "boolean") {
    return Result.fail(invalidRequest("dry_run must be true or false", "dry_run"))
  }
  const field = known === "add" ? "accounts" : "identifiers"
  const lines = body[field]
  if (!Array.isArray(lines)) return Result.fail(invalidRequest(`${field} must be an array`, field))
  if (lines.length > mostLines) {
    return Result.fail(invalidRequest(`${field} must have at most ${mostLines} entries`, field))
  }
  return Result.succeed({ action: known, lines, dryRun: dry_run === true })
}

/** The result of each line, and the configuration; `raw` is the same object if nothing changes. */
export interface BatchOutcome {
  readonly raw: RawConfig
  readonly changed: number
  readonly results: ReadonlyArray<typeof BatchResult.Type>
}

const decodeLine = Schema.decodeUnknownResult(AddAccountRequest)

/** The entry of a line, or the name of the refused field. */
const accountOfLine = (line: unknown, upstreams: GatewayConfig["upstreams"]): Result.Result<RawConfig, string> => {
  const decoded = decodeLine(line)
  if (Result.isFailure(decoded)) return Result.fail(schemaFault(decoded.failure.issue).param ?? "account")
  if (!upstreams.has(upstreamNamed(decoded.success.upstream))) return Result.fail("upstream")
  return Result.mapError(newAccount(decoded.success), (error) => error.param ?? "account")
}

const add = Effect.fnUntraced(function*(raw: RawConfig, config: GatewayConfig, lines: ReadonlyArray<unknown>) {
  const results: Array<typeof BatchResult.Type> = []
  const added: Array<RawConfig> = []
  const taken = new Set<string>()
  yield* forEachCooperatively(lines, (line, index) => {
    const account = accountOfLine(line, config.upstreams)
    if (Result.isFailure(account)) {
      results.push({ index, identifier: "", ok: false, detail: account.failure })
      return
    }
    const identifier = keyWithin(String(account.success["upstream"] ?? ""), identifierOf(account.success, sha256Hex))
    const identity = identityKeys(account.success, sha256Hex)
    if (identity.some((key) => taken.has(key) || config.account_table.index.has(key))) {
      results.push({ index, identifier, ok: false, detail: "duplicate" })
      return
    }
    for (const key of identity) taken.add(key)
    added.push(account.success)
    results.push({ index, identifier, ok: true, detail: "" })
  })
  const outcome: BatchOutcome = {
    raw: added.length === 0 ? raw : { ...raw, accounts: [...accountsOf(raw), ...added] },
    changed: added.length,
    results
  }
  return outcome
})

const mark = Effect.fnUntraced(function*(
  raw: RawConfig,
  config: GatewayConfig,
  lines: ReadonlyArray<unknown>,
  action: (typeof actions)[number]
) {
  const results: Array<typeof BatchResult.Type> = []
  const places = new Map<string, number>()
  yield* forEachCooperatively(config.accounts, (account, place) => {
    places.set(account.identity[0]!, place)
  })
  const named = new Set<number>()
  yield* forEachCooperatively(lines, (line, index) => {
    const found = typeof line === "string" ? accountIn(config.account_table, line) : Result.fail(unknownAccount)
    const place = Result.isSuccess(found) ? places.get(found.success.identity[0]!) : undefined
    if (Result.isFailure(found) || place === undefined) {
      const isAmbiguous = Result.isFailure(found) && found.failure !== unknownAccount
      const detail = isAmbiguous ? found.failure.message : "unknown account"
      results.push({ index, identifier: typeof line === "string" ? line : "", ok: false, detail })
      return
    }
    const again = named.has(place)
    named.add(place)
    results.push({ index, identifier: found.success.name, ok: !again, detail: again ? "duplicate" : "" })
  })
  const accounts: Array<RawConfig> = []
  let changed = 0
  yield* forEachCooperatively(accountsOf(raw), (entry, place) => {
    const next = !named.has(place)
      ? entry
      : action === "delete"
      ? undefined
      : markAccount(entry, { disabled: action === "disable" })
    if (next !== entry) changed++
    if (next !== undefined) accounts.push(next)
  })
  const outcome: BatchOutcome = { raw: changed === 0 ? raw : { ...raw, accounts }, changed, results }
  return outcome
})

/** Applies a batch to a configuration, in slices. */
export const applyBatch = (
  raw: RawConfig,
  config: GatewayConfig,
  { action, lines }: Batch
): Effect.Effect<BatchOutcome> => action === "add" ? add(raw, config, lines) : mark(raw, config, lines, action)
