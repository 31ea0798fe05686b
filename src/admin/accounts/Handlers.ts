/**
 * Accounts at work.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { type AccountFacts, Accounts } from "../../accounts/Accounts.ts"
import { type Account, findAccount } from "../../config/Account.ts"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { accountsOf } from "../../config/edit.ts"
import { sha256Hex } from "../../config/json.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { identityKeys } from "../../domain/identity.ts"
import { resolveModel } from "../../domain/models.ts"
import { jsonBody } from "../../http/jsonBody.ts"
import { apiId, jsonReply, modelNotFound } from "../../http/reply.ts"
import { CurrentRequest } from "../../http/Request.ts"
import { viewAccount } from "../accountView.ts"
import { changed, lastingOf, logChange } from "../changes.ts"
import { AccountTests } from "./AccountTests.ts"
import type { AccountItem } from "./Api.ts"
import {
  AddAccountRequest,
  AdminAccountsGroup,
  DeleteSessionsRequest,
  TestAccountRequest,
  TestAllRequest
} from "./Api.ts"
import { newAccount } from "./newAccount.ts"
import { pageOf } from "./page.ts"

const readAccount = jsonBody(AddAccountRequest)
const readTest = jsonBody(TestAccountRequest)
const readTestAll = jsonBody(TestAllRequest, { mayBeEmpty: true })
const readDeletion = jsonBody(DeleteSessionsRequest)

/** Accounts that are tested at once by test-all (spec "Limits"). */
const testsAtOnce = 5

const defaultModel = "upstream-chat"

/** The literal that the spec asks for. */
const deleted = "删除成功"

const unknownAccount = gatewayError("not_found", "No such account is configured")

const accountsReply = (saved: Saved) => ({
  success: true,
  total_accounts: saved.config.accounts.length,
  ...lastingOf(saved)
})

/** An account with what the pool knows of it; a change of the pool may have taken it away meanwhile. */
const itemOf = (account: Account, facts: AccountFacts | undefined): typeof AccountItem.Type => ({
  ...viewAccount(account),
  ...(facts === undefined ? {} : { has_token: facts.hasToken, token_preview: facts.tokenPreview }),
  test_status: facts?.testStatus ?? "",
  health: facts?.health ?? "ready",
  health_reason: facts?.reason ?? null,
  recovery_seconds: facts?.recovery === undefined ? null : Math.ceil(facts.recovery / 1000),
  in_use: facts?.inUse ?? 0
})

export const AdminAccountsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminAccountsGroup),
  "admin-accounts",
  Effect.fnUntraced(function*(handlers) {
    const accounts = yield* Accounts
    const store = yield* ConfigStore
    const tests = yield* AccountTests

    const findModel = (named: string | null | undefined) => {
      const modelName = named ?? defaultModel
      const model = resolveModel(store.unsafeCurrent().model_table, modelName)
      return model === undefined ? Effect.fail(modelNotFound(modelName)) : Effect.succeed({ model, modelName })
    }

    return handlers
      .handle(
        "list",
        Effect.fnUntraced(function*({ query }) {
          const { accounts: shown, ...page } = pageOf((yield* store.current).accounts, {
            page: query.page === "" ? undefined : query.page,
            page_size: query.page_size === "" ? undefined : query.page_size,
            q: query.q
          })
          const facts = yield* accounts.describe(shown.map((account) => account.identifier))
          const known = new Map(facts.map((each) => [each.identifier, each]))
          return { items: shown.map((account) => itemOf(account, known.get(account.identifier))), ...page }
        })
      )
      .handleRaw(
        "add",
        Effect.fnUntraced(function*({ request }) {
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
          return jsonReply(accountsReply(saved))
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
        Effect.fnUntraced(function*({ request }) {
          const body = yield* readTest(request)
          const { id } = yield* CurrentRequest
          const { model, modelName } = yield* findModel(body.model)
          const { identifier } = body
          return jsonReply(
            yield* tests.test({ identifier, model, modelName, message: body.message ?? "", requestId: id })
          )
        })
      )
      .handleRaw(
        "testAll",
        Effect.fnUntraced(function*({ request }) {
          const body = yield* readTestAll(request)
          const { id } = yield* CurrentRequest
          const { model, modelName } = yield* findModel(body.model)
          const results = yield* Effect.forEach(
            (yield* store.current).accounts,
            ({ identifier }) => tests.test({ identifier, model, modelName, message: "", requestId: id }),
            { concurrency: testsAtOnce }
          )
          const success = results.filter((result) => result.success).length
          return jsonReply({ total: results.length, success, failed: results.length - success, results })
        })
      )
      .handleRaw(
        "deleteSessions",
        Effect.fnUntraced(function*({ request }) {
          const { identifier } = yield* readDeletion(request)
          return yield* Effect.matchEffect(tests.deleteSessions(identifier), {
            onFailure: (error) => Effect.succeed(jsonReply({ success: false, message: error.message })),
            onSuccess: (note) =>
              Effect.as(
                logChange("an account's upstream sessions were deleted"),
                jsonReply({ success: true, message: deleted, ...(note === undefined ? {} : { note }) })
              )
          })
        })
      )
      .handle("queue", () => accounts.status)
  })
)
