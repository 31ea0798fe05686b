/**
 * Serves accounts, their tests and the queue.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Accounts } from "../../accounts/Accounts.ts"
import { AccountWorkFacts, addWork } from "../../accounts/AccountWork.ts"
import type { Account } from "../../config/Account.ts"
import { ConfigStore, type Saved } from "../../config/ConfigStore.ts"
import { accountIn, unknownAccount } from "../../config/entries/accountEdits.ts"
import { AccountEntries } from "../../config/entries/AccountEntries.ts"
import { isJsonObject } from "../../config/json.ts"
import { failureText } from "../../credentials/CredentialSource.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { routeNotFound } from "../../domain/routeNotFound.ts"
import { meantRoute } from "../../domain/routes.ts"
import { payloadReader } from "../../http/jsonBody.ts"
import { respond } from "../../http/reply.ts"
import { CurrentRequest } from "../../http/RequestContext.ts"
import { adminBodyOf, jsonObjectBodyOf, refusing } from "../adminBody.ts"
import { changed, lastingOf, logChange, savedOr } from "../changes.ts"
import { adminHandlers } from "../handlers.ts"
import { CurrentOperator } from "../middleware.ts"
import { makeNodeItems } from "../nodeItems.ts"
import { Nodes } from "../nodes/Nodes.ts"
import { answerQuery, askAll } from "../nodes/Query.ts"
import { AccountTests } from "./AccountTests.ts"
import { AccountBatchRequest, type AccountState, AdminAccountsGroup, PatchAccountRequest } from "./Api.ts"
import { applyBatch, type BatchOutcome, readBatch } from "./batch.ts"
import {
  accountPage,
  accountPageBySort,
  accountPageByState,
  accountsFound,
  accountsThat,
  describeSliced,
  isIn,
  itemOf,
  shownTo
} from "./view.ts"

const { endpoints } = AdminAccountsGroup
const readAccount = adminBodyOf(endpoints.add)
const readBatchBody = jsonObjectBodyOf([AccountBatchRequest])
const refuseMarks = refusing([PatchAccountRequest])
const readMarks = payloadReader(endpoints.patch, {
  refuse: function*(body) {
    return isJsonObject(body) && Object.hasOwn(body, "upstream") ? upstreamIsFixed : yield* refuseMarks(body)
  }
})
const readTest = adminBodyOf(endpoints.test)
const readTestAll = adminBodyOf(endpoints.testAll)
const readDeletion = adminBodyOf(endpoints.deleteSessions)

/** The question to each node for the work of accounts, by their names. */
const workQuery = {
  name: "account-work",
  question: Schema.fromJsonString(Schema.Array(Schema.String)),
  answer: Schema.fromJsonString(Schema.Record(Schema.String, AccountWorkFacts))
}

const defaultModel = "upstream-chat"

/** The message that the spec prescribes. */
const deleted = "删除成功"

const upstreamIsFixed = invalidRequest(
  "upstream cannot be changed; add the account to the other upstream and remove this one",
  "upstream"
)
const nothingToRenew = gatewayError(
  "conflict",
  "The account has no credential with a source: there is nothing to renew"
)
const storeLost = gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })

const accountsReply = (saved: Saved) => ({
  success: true,
  total_accounts: saved.config.accounts.length,
  ...lastingOf(saved)
})

export const AdminAccountsHandlers = adminHandlers(AdminAccountsGroup, function*() {
  const accounts = yield* Accounts
  const nodes = yield* Nodes
  const store = yield* ConfigStore
  const entries = yield* AccountEntries
  const tests = yield* AccountTests
  const { missingNodes, peers } = yield* makeNodeItems

  answerQuery(
    peers,
    workQuery,
    (names) =>
      Effect.map(
        accounts.describe(names),
        (facts) =>
          Object.fromEntries(facts.flatMap(({ identifier, work }) => work === undefined ? [] : [[identifier, work]]))
      )
  )
  const askForWork = askAll(peers, workQuery)

  const testModel = Effect.fnUntraced(function*(named: string | null | undefined) {
    const modelName = named ?? defaultModel
    const { route_table } = store.now()
    const model = meantRoute(route_table, "usual", modelName)
    if (model === undefined && named !== null && named !== undefined) {
      return yield* routeNotFound(route_table, undefined, modelName)
    }
    return { model, modelName, requestId: (yield* CurrentRequest).id }
  })

  /** Fails for an identifier that accounts of several upstreams have. */
  const refuseAmbiguous = Effect.fnUntraced(function*(identifier: string) {
    const found = accountIn(store.now().account_table, identifier)
    if (Result.isFailure(found) && found.failure !== unknownAccount) return yield* found.failure
  })

  /** The accounts as the list shows them, and the reply field `nodes_missing`. */
  const itemsOf = Effect.fnUntraced(function*(shown: ReadonlyArray<Account>) {
    const names = shown.map((account) => account.name)
    const [facts, { answers, missing }] = yield* Effect.all(
      [describeSliced(accounts, names), askForWork(names)],
      { concurrency: 2 }
    )
    const known = new Map(facts.map((each) => [each.identifier, each]))
    const elsewhere = Array.from(answers.values())
    const config = store.now()
    const items = shown.map((account) => {
      const own = known.get(account.name)
      const all = [own, ...elsewhere.map((work) => ({ work: work[account.name] }))].flatMap((each) => each?.work ?? [])
      return itemOf(account, own, config, all.length === 0 ? undefined : all.reduce(addWork))
    })
    return { items, ...missingNodes(missing) }
  })

  /** A changed account as the list shows it. */
  const changedItem = Effect.fnUntraced(function*(account: Account | undefined) {
    if (account === undefined) return yield* unknownAccount
    const { items } = yield* itemsOf([account])
    return items[0]!
  })

  const withState = (configured: ReadonlyArray<Account>, state: typeof AccountState.Type | undefined) =>
    state === undefined
      ? Effect.succeed(configured)
      : accountsThat(accounts, configured, (facts) => isIn(state, facts))

  return {
    list: Effect.fnUntraced(function*({ query }) {
      const { accounts: configured } = yield* store.current
      const { role } = yield* CurrentOperator
      if (query.sort && query.sort !== "state") {
        const found = accountsFound(yield* withState(configured, query.state || undefined), query)
        const { items: all, ...missing } = yield* itemsOf(found)
        const { items, ...page } = accountPageBySort(all, query.sort, query)
        return { ...page, items: items.map((item) => shownTo(role, item)), ...missing }
      }
      const { items, ...page } = query.sort === "state"
        ? yield* accountPageByState(accounts, configured, query)
        : accountPage(yield* withState(configured, query.state || undefined), query)
      const { items: shown, ...missing } = yield* itemsOf(items)
      return { ...page, items: shown.map((item) => shownTo(role, item)), ...missing }
    }),
    batch: Effect.fnUntraced(function*({ endpoint, request }) {
      const batch = yield* Effect.fromResult(readBatch(yield* readBatchBody(request)))
      let outcome: BatchOutcome | undefined
      const update = store.update((raw, config) =>
        Effect.map(applyBatch(raw, config, batch), (applied) => {
          outcome = applied
          return applied.raw
        }), { dryRun: batch.dryRun })
      const saved = yield* batch.dryRun ? savedOr(update) : changed(`accounts: ${batch.action}`, update)
      const { changed: count, results } = outcome!
      const failed = results.filter(({ ok }) => !ok).length
      return respond(endpoint, { success: true, changed: count, failed, results, ...lastingOf(saved) })
    }),
    patch: Effect.fnUntraced(function*({ params: { identifier }, request }) {
      const saved = yield* changed("an account was marked", entries.mark(identifier, yield* readMarks(request)))
      return { success: true, account: yield* changedItem(saved.account), ...lastingOf(saved) }
    }),
    add: Effect.fnUntraced(function*({ request }) {
      const saved = yield* changed("an account was added", entries.add(yield* readAccount(request)))
      return { ...accountsReply(saved), account: yield* changedItem(saved.account) }
    }),
    remove: ({ params: { identifier } }) =>
      Effect.map(changed("an account was removed", entries.remove(identifier)), accountsReply),
    renew: Effect.fnUntraced(function*({ params: { identifier } }) {
      const account = yield* Effect.fromResult(accountIn(store.now().account_table, identifier))
      const { renewNow } = yield* accounts.access(account.name)
      if (renewNow === undefined) return yield* nothingToRenew
      const message = yield* Effect.match(renewNow, { onFailure: failureText, onSuccess: () => "" })
      yield* logChange("an account's token was renewed on order")
      return { success: message === "", message, account: yield* changedItem(account) }
    }),
    test: Effect.fnUntraced(function*({ request }) {
      const { identifier, message, model } = yield* readTest(request)
      yield* refuseAmbiguous(identifier)
      return yield* tests.test({ ...(yield* testModel(model)), identifier, message: message ?? "" })
    }),
    testAll: Effect.fnUntraced(function*({ endpoint, request }) {
      const { model } = yield* readTestAll(request)
      const results = yield* tests.testAll(yield* testModel(model))
      const success = results.filter((result) => result.success).length
      return respond(endpoint, { total: results.length, success, failed: results.length - success, results })
    }),
    deleteSessions: Effect.fnUntraced(function*({ request }) {
      const { identifier } = yield* readDeletion(request)
      yield* refuseAmbiguous(identifier)
      return yield* Effect.matchEffect(tests.deleteSessions(identifier), {
        onFailure: ({ message }) => Effect.succeed({ success: false, message }),
        onSuccess: (note) =>
          Effect.as(
            logChange("an account's upstream sessions were deleted"),
            { success: true, message: deleted, ...(note === undefined ? {} : { note }) }
          )
      })
    }),
    queue: () =>
      Effect.flatMap(Effect.zip(accounts.status, nodes.list), ([status, list]) =>
        // While the store is lost, the status in the pool is out of date.
        nodes.store()?.state === "lost" ? Effect.fail(storeLost) : Effect.succeed({
          ...status,
          nodes: list.map(({ id, in_use, waiting }) => ({ id, in_use, waiting }))
        }))
  }
})
