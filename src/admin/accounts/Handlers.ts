/**
 * Accounts at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { type AccountFacts, Accounts } from "../../accounts/Accounts.ts"
import { Nodes } from "../../cluster/nodes/Nodes.ts"
import { type Account, findAccount } from "../../config/Account.ts"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { accountsOf } from "../../config/edit.ts"
import { sha256Hex } from "../../config/json.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { identityKeys } from "../../domain/identity.ts"
import { modelNotFound } from "../../domain/modelNotFound.ts"
import { resolveModel } from "../../domain/models.ts"
import { apiId, respond } from "../../http/reply.ts"
import { CurrentRequest } from "../../http/Request.ts"
import { adminBodyOf, jsonObjectBodyOf } from "../adminBody.ts"
import { changed, lastingOf, logChange } from "../changes.ts"
import { savedOr } from "../configErrors.ts"
import { accountsThat } from "./accountsThat.ts"
import { AccountTests } from "./AccountTests.ts"
import type { AccountState } from "./Api.ts"
import { AccountBatchRequest, AdminAccountsGroup } from "./Api.ts"
import { applyBatch, type BatchOutcome, readBatch } from "./batch.ts"
import { itemOf } from "./itemOf.ts"
import { markAccount } from "./markAccount.ts"
import { newAccount } from "./newAccount.ts"
import { pageOf } from "./page.ts"

const { endpoints } = AdminAccountsGroup
const readAccount = adminBodyOf(endpoints.add)
const readBatchBody = jsonObjectBodyOf([AccountBatchRequest])
const readMarks = adminBodyOf(endpoints.patch)
const readTest = adminBodyOf(endpoints.test)
const readTestAll = adminBodyOf(endpoints.testAll, { mayBeEmpty: true })
const readDeletion = adminBodyOf(endpoints.deleteSessions)

/** Accounts that are tested at once by test-all (spec "Limits"). */
const testsAtOnce = 5

const defaultModel = "upstream-chat"

/** The literal that the spec asks for. */
const deleted = "删除成功"

const unknownAccount = gatewayError("not_found", "No such account is configured")
const storeLost = gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })

const accountsReply = (saved: Saved) => ({
  success: true,
  total_accounts: saved.config.accounts.length,
  ...lastingOf(saved)
})

/** Whether an account is one of those that a list was narrowed to. */
const isIn = (state: typeof AccountState.Type, { disabled, health, testStatus }: AccountFacts): boolean =>
  state === "failed" ? testStatus === "failed" : state === "disabled" ? disabled : !disabled && health === state

export const AdminAccountsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminAccountsGroup),
  "admin-accounts",
  Effect.fnUntraced(function*(handlers) {
    const accounts = yield* Accounts
    const nodes = yield* Nodes
    const store = yield* ConfigStore
    const tests = yield* AccountTests

    const findModel = (named: string | null | undefined) => {
      const modelName = named ?? defaultModel
      const { model_table } = store.unsafeCurrent()
      const model = resolveModel(model_table, modelName)
      return model === undefined
        ? Effect.fail(modelNotFound(modelName, model_table))
        : Effect.succeed({ model, modelName })
    }

    /** The accounts as the list shows them. */
    const itemsOf = (shown: ReadonlyArray<Account>) =>
      Effect.map(accounts.describe(shown.map((account) => account.identifier)), (facts) => {
        const known = new Map(facts.map((each) => [each.identifier, each]))
        return shown.map((account) => itemOf(account, known.get(account.identifier)))
      })

    /** An account that was changed as the list shows it. */
    const changedItem = Effect.fnUntraced(function*(account: Account | undefined) {
      if (account === undefined) return yield* unknownAccount
      const [item] = yield* itemsOf([account])
      return item!
    })

    const narrowed = (configured: ReadonlyArray<Account>, state: typeof AccountState.Type | undefined) =>
      state === undefined
        ? Effect.succeed(configured)
        : accountsThat(accounts, configured, (facts) => isIn(state, facts))

    return handlers
      .handle(
        "list",
        Effect.fnUntraced(function*({ query }) {
          const { accounts: configured } = yield* store.current
          const { accounts: shown, ...page } = pageOf(yield* narrowed(configured, query.state || undefined), {
            page: query.page === "" ? undefined : query.page,
            page_size: query.page_size === "" ? undefined : query.page_size,
            q: query.q
          })
          return { items: yield* itemsOf(shown), ...page }
        })
      )
      .handleRaw(
        "batch",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const batch = yield* Effect.fromResult(readBatch(yield* readBatchBody(request)))
          let outcome: BatchOutcome | undefined
          const update = store.update((raw, config) =>
            Effect.map(applyBatch(raw, config, batch), (applied) => {
              outcome = applied
              return applied.raw
            }), { dryRun: batch.dryRun })
          const saved = yield* batch.dryRun ? savedOr(update) : changed(`accounts: ${batch.action}`, update)
          const { changed: count, results } = outcome!
          return respond(endpoint, {
            success: true,
            changed: count,
            failed: results.filter(({ ok }) => !ok).length,
            results,
            ...lastingOf(saved)
          })
        })
      )
      .handleRaw(
        "patch",
        Effect.fnUntraced(function*({ endpoint, params, request }) {
          const marks = yield* readMarks(request)
          if (marks.disabled === undefined && marks.note === undefined) {
            return yield* invalidRequest("disabled or note is required", "disabled")
          }
          const saved = yield* changed(
            "an account was marked",
            store.update((raw, config) => {
              const account = findAccount(config.account_table, params.identifier)
              if (account === undefined) return Effect.fail(unknownAccount)
              const entries = accountsOf(raw)
              const place = config.accounts.indexOf(account)
              const marked = markAccount(entries[place]!, marks)
              return Effect.succeed(marked === entries[place] ? raw : { ...raw, accounts: entries.with(place, marked) })
            })
          )
          const account = yield* changedItem(findAccount(saved.config.account_table, params.identifier))
          return respond(endpoint, { success: true, account, ...lastingOf(saved) })
        })
      )
      .handleRaw(
        "add",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const entry = yield* Effect.fromResult(newAccount(yield* readAccount(request)))
          const identity = identityKeys(entry, sha256Hex)
          const saved = yield* changed(
            "an account was added",
            store.update((raw, config) =>
              identity.some((key) => config.account_table.index.has(key))
                ? Effect.fail(invalidRequest("The account is configured already"))
                : Effect.succeed({ ...raw, accounts: [...accountsOf(raw), entry] })
            )
          )
          const account = yield* changedItem(saved.config.account_table.index.get(identity[0]!))
          return respond(endpoint, { ...accountsReply(saved), account })
        })
      )
      .handle(
        "remove",
        Effect.fnUntraced(function*({ params }) {
          const saved = yield* changed(
            "an account was removed",
            store.update((raw, config) => {
              const account = findAccount(config.account_table, params.identifier)
              if (account === undefined) return Effect.fail(unknownAccount)
              const place = config.accounts.indexOf(account)
              return Effect.succeed({ ...raw, accounts: accountsOf(raw).filter((_, index) => index !== place) })
            })
          )
          return accountsReply(saved)
        })
      )
      .handleRaw(
        "test",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const body = yield* readTest(request)
          const { id } = yield* CurrentRequest
          const { model, modelName } = yield* findModel(body.model)
          const { identifier } = body
          return respond(
            endpoint,
            yield* tests.test({ identifier, model, modelName, message: body.message ?? "", requestId: id })
          )
        })
      )
      .handleRaw(
        "testAll",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const body = yield* readTestAll(request)
          const { id } = yield* CurrentRequest
          const { model, modelName } = yield* findModel(body.model)
          const results = yield* Effect.forEach(
            (yield* store.current).accounts,
            ({ identifier }) => tests.test({ identifier, model, modelName, message: "", requestId: id }),
            { concurrency: testsAtOnce }
          )
          const success = results.filter((result) => result.success).length
          return respond(endpoint, { total: results.length, success, failed: results.length - success, results })
        })
      )
      .handleRaw(
        "deleteSessions",
        Effect.fnUntraced(function*({ endpoint, request }) {
          const { identifier } = yield* readDeletion(request)
          return yield* Effect.matchEffect(tests.deleteSessions(identifier), {
            onFailure: (error) => Effect.succeed(respond(endpoint, { success: false, message: error.message })),
            onSuccess: (note) =>
              Effect.as(
                logChange("an account's upstream sessions were deleted"),
                respond(endpoint, { success: true, message: deleted, ...(note === undefined ? {} : { note }) })
              )
          })
        })
      )
      .handle("queue", () =>
        Effect.flatMap(Effect.zip(accounts.status, nodes.list), ([status, list]) => {
          // What the pool knows then is how it was.
          if (nodes.store()?.state === "lost") return Effect.fail(storeLost)
          return Effect.succeed({
            ...status,
            nodes: list.map(({ id, in_use, waiting }) => ({ id, in_use, waiting }))
          })
        }))
  })
)
