/**
 * Changes by an operator, the upstream and edits of the file while requests run. Each change follows from the seed and its number, registers
 * the errors that it explains, and checks its own outcome.
 */
import { readFile, rename, writeFile } from "node:fs/promises"
import path from "node:path"
import type { ErrorCode } from "../../src/domain/GatewayError.ts"
import { at, listAt, numberAt, parseJson, textAt } from "./json.ts"
import { churning, type Plan } from "./plan.ts"
import { type Random, randomFrom } from "./random.ts"
import { headersOf } from "./requests.ts"
import {
  accountOf,
  type AdminReply,
  aliasOf,
  businessKey,
  churnKeyOf,
  mostInFlight,
  type Site,
  stableOf,
  wideLimits
} from "./site.ts"
import { pause, until } from "./until.ts"
import type { OpenWindow, World } from "./world.ts"

/** Reports a wrong outcome. */
export type Complain = (what: string) => void

interface Change {
  readonly site: Site
  readonly world: World
  readonly random: Random
  readonly clients: number
  /** State that earlier changes left, by name. */
  readonly left: Map<string, OpenWindow>
  readonly accounts: number
  readonly complain: Complain
}

const usesKey = (key: string) => ({ credential, variant }: Plan): boolean =>
  credential === "churn" && churnKeyOf(variant % churning) === key

const usesAlias = (alias: string) => ({ model }: Plan): boolean => model === alias

const pathOf = (name: string): string => encodeURIComponent(name)

/** An admin call that must succeed. `also` is another status that is acceptable at this moment. */
const expectOk = ({ complain }: Change, what: string, reply: AdminReply, also?: number): void => {
  if (reply.status !== 200 && reply.status !== also) complain(`${what}: ${reply.status} ${reply.text.slice(0, 300)}`)
}

/** Registers explained errors from now on. Replaces those of an earlier change of that name. */
const explainAs = ({ left, world }: Change, name: string, ...what: Parameters<World["explain"]>): void => {
  const before = left.get(name)
  left.set(name, world.explain(...what))
  before?.end()
}

/** A request pinned to an account. Returns its outcome. */
const askPinned = ({ site }: Change, account: string) =>
  site.client.send({
    method: "POST",
    path: "/v1/chat/completions",
    headers: headersOf("chat", businessKey, account),
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "!say one" }] })
  })

/** Errors of a request with both ended tokens and its own fault, which together exceed its attempts. */
const spent: ReadonlyArray<ErrorCode> = ["no_account_available", "upstream_error", "upstream_rate_limited"]

const hasFault = ({ fault }: Plan): boolean => fault !== undefined

const limits = async (change: Change): Promise<void> => {
  const { clients, random, site, world } = change
  const put = async (runtime: object): Promise<void> =>
    expectOk(change, "limits", await site.admin("PUT", "/admin/settings", { runtime }))
  const account_max_inflight = random.whole(1, mostInFlight)
  if (random.chance(0.5)) {
    // A request cannot wait for a cooling account either.
    const tight = world.explain(["rate_limit_exceeded", "upstream_rate_limited"])
    await put({ account_max_inflight, account_max_queue: random.whole(0, 3), global_max_inflight: random.whole(1, 4) })
    await pause(random.whole(50, 500))
    await put(wideLimits(clients))
    tight.end()
  }
  await put({ ...wideLimits(clients), account_max_inflight })
}

const accounts = async (change: Change): Promise<void> => {
  const { random, site } = change
  const account = accountOf(`churn-${random.whole(0, churning - 1)}`)
  const has = async (): Promise<boolean> => {
    const { value } = await site.admin("GET", `/admin/accounts?q=${pathOf(account.email)}`)
    return (numberAt(value, "total") ?? 0) > 0
  }
  const had = await has()
  expectOk(
    change,
    "accounts",
    had
      ? await site.admin("DELETE", `/admin/accounts/${pathOf(account.email)}`)
      : await site.admin("POST", "/admin/accounts", account)
  )
  // The account may be suspended; one request at a time is enough to detect that.
  if (!had) await askPinned(change, account.email)
  if (had === await has()) change.complain(`${account.email} is ${had ? "still" : "not"} listed`)
}

const keys = async (change: Change): Promise<void> => {
  const { random, site } = change
  const key = churnKeyOf(random.whole(0, churning - 1))
  const listed = listAt((await site.admin("GET", "/admin/config")).value, "keys").includes(key)
  if (listed) {
    // From before the removal until it is back.
    explainAs(change, key, ["authentication_failed"], usesKey(key))
    expectOk(change, "a key that goes", await site.admin("DELETE", `/admin/keys/${pathOf(key)}`))
  } else {
    expectOk(change, "a key that comes", await site.admin("POST", "/admin/keys", { key }))
    change.left.get(key)?.end()
    change.left.delete(key)
  }
}

const aliases = async (change: Change): Promise<void> => {
  const there = Array.from({ length: churning }, () => change.random.chance(0.6))
  there.forEach((stays, i) => {
    if (!stays) explainAs(change, aliasOf(i), ["model_not_found"], usesAlias(aliasOf(i)))
  })
  const model_aliases = Object.fromEntries(
    there.flatMap((stays, i) => stays ? [[aliasOf(i), "upstream-chat"]] : [])
  )
  expectOk(change, "aliases", await change.site.admin("PUT", "/admin/settings", { model_aliases }))
  there.forEach((stays, i) => {
    if (!stays) return
    change.left.get(aliasOf(i))?.end()
    change.left.delete(aliasOf(i))
  })
}

const imports = async (change: Change): Promise<void> => {
  const { random, site } = change
  const config = {
    accounts: [accountOf(`churn-${random.whole(0, churning - 1)}`)],
    responses: { store_ttl_seconds: 30 }
  }
  const reply = random.chance(0.5)
    ? await site.admin("POST", "/admin/config/import?mode=merge", { config })
    : await site.admin("POST", "/admin/import", { keys: [businessKey], accounts: config.accounts })
  expectOk(change, "import", reply)
}

const handEdit = async (change: Change): Promise<void> => {
  const { random, site } = change
  // Edits of one field in the files of two gateways conflict, and the later one is not applied.
  const file = path.join(site.gateways[0]!.folder, "config.json")
  const before = await readFile(file, "utf8")
  const value = parseJson(before)
  if (typeof value !== "object" || value === null) return change.complain("the configuration's file is no JSON")
  if (random.chance(0.3)) {
    await writeFile(file, before.slice(0, before.length >> 1))
    await pause(random.whole(50, 400))
  }
  // A value that the file has already is no edit.
  const limit = random.pick(
    Array.from({ length: 16 }, (_, i) => i + 5).filter((each) => each !== numberAt(value, "captures", "limit"))
  )
  const edited = JSON.stringify({ ...value, captures: { limit, max_body_bytes: 65_536 } }, undefined, 2)
  if (random.chance(0.5)) await writeFile(file, edited)
  else {
    await writeFile(`${file}.by-hand`, edited, { mode: 0o600 })
    await rename(`${file}.by-hand`, file)
  }
  const applied = await until(
    async () => numberAt((await site.admin("GET", "/admin/dev/captures")).value, "limit") === limit,
    10_000
  )
  if (!applied) change.complain(`an edit of the file by hand was not applied: captures.limit ${limit}`)
}

/** Ends tokens at the upstream, then has every account log in again. */
const tokens = async (change: Change): Promise<void> => {
  const { accounts, random, site, world } = change
  const account = stableOf(random.whole(0, accounts - 1)).email
  const all = random.chance(0.3)
  const ended = world.explain(spent, hasFault)
  await site.control("revoke", all ? {} : { account })
  const listed = listAt((await site.admin("GET", "/admin/accounts?page_size=100")).value, "items")
  const emails = all ? listed.map((item) => textAt(item, "email")).filter((email) => email !== "") : [account]
  await Promise.all(emails.map((email) => askPinned(change, email)))
  ended.end()
}

/**
 * A failure of one account that other accounts can replace, in calls that a script cannot reach. A request pinned to the account consumes
 * it immediately; several pending failures would exceed the attempts of one request.
 */
const trouble = async (change: Change): Promise<void> => {
  const { accounts, random, site, world } = change
  const account = stableOf(random.whole(0, accounts - 1)).email
  const call = random.pick(["create", "create", "stop_stream", "delete", "login"])
  const name = random.pick(["trouble", "html", "reset-before-headers", "no-data", "broken-json", "slow"])
  const ordered = world.explain(spent, hasFault)
  await site.control("fail", { call, name, account, times: 1 })
  if (call === "login") await site.control("revoke", { account })
  const { how, status } = await askPinned(change, account)
  if (how !== "whole" || ![200, 429, 503].includes(status)) change.complain(`${call} ${name}: ${how} ${status}`)
  ordered.end()
}

/** Suspends an account at the upstream or lifts the suspension, and makes the gateway notice. */
const suspension = async (change: Change): Promise<void> => {
  const { left, random, site } = change
  const account = accountOf(`churn-${random.whole(0, churning - 1)}`).email
  const suspended = random.chance(0.5)
  // An account out of rotation is tried now and then, which uses one attempt of a request.
  if (suspended) explainAs(change, account, spent, hasFault)
  const noticed = change.world.explain(spent)
  await site.control("suspend", { account, suspended })
  await askPinned(change, account)
  noticed.end()
  if (suspended) return
  left.get(account)?.end()
  left.delete(account)
}

const autoDelete = async (change: Change): Promise<void> => {
  const mode = change.random.pick(["none", "single", "all"])
  expectOk(change, "auto_delete", await change.site.admin("PUT", "/admin/settings", { auto_delete: { mode } }))
}

const looks = async (change: Change): Promise<void> => {
  const { random, site } = change
  const page = random.pick([
    "/admin/config",
    "/admin/settings",
    "/admin/config/export",
    "/admin/accounts?page_size=100",
    "/admin/dev/captures",
    "/admin/dev/raw-samples/query?q=soak",
    "/admin/queue/status",
    "/admin/requests?limit=50",
    "/admin/usage",
    "/metrics",
    "/openapi.json",
    "/console/"
  ])
  const { status, text } = await site.admin("GET", page)
  if (status >= 500) change.complain(`${page}: ${status} ${text.slice(0, 300)}`)
}

const login = async (change: Change): Promise<void> => {
  const { site } = change
  const reply = await site.admin("POST", "/admin/login", { admin_key: "soak-admin-key" })
  expectOk(change, "login", reply, 429)
  if (reply.status === 200 && at(reply.value, "success") !== true) change.complain(`login: ${reply.text}`)
}

const accountTest = async (change: Change): Promise<void> => {
  const { email: identifier } = stableOf(change.random.whole(0, change.accounts - 1))
  expectOk(change, "account test", await change.site.admin("POST", "/admin/accounts/test", { identifier }))
}

const kinds = {
  limits,
  accounts,
  keys,
  aliases,
  imports,
  handEdit,
  tokens,
  trouble,
  suspension,
  autoDelete,
  looks,
  login,
  accountTest
}

const weights: Readonly<Record<keyof typeof kinds, number>> = {
  limits: 3,
  accounts: 3,
  keys: 3,
  aliases: 2,
  imports: 1,
  handEdit: 2,
  tokens: 2,
  trouble: 3,
  suspension: 1,
  autoDelete: 1,
  looks: 3,
  login: 1,
  accountTest: 1
}

/** Makes the changes of a soak in order. */
export class Changes {
  private readonly base: Omit<Change, "random" | "complain">
  private readonly complain: (number: number, what: string) => void
  private readonly seed: string
  /** Number of changes made. */
  made = 0

  constructor(
    options: {
      readonly site: Site
      readonly world: World
      readonly seed: string
      readonly clients: number
      readonly accounts: number
      readonly complain: (number: number, what: string) => void
    }
  ) {
    const { accounts, clients, complain, seed, site, world } = options
    this.base = { site, world, clients, accounts, left: new Map() }
    this.seed = seed
    this.complain = complain
  }

  /** Makes the next change. */
  async next(): Promise<void> {
    const number = this.made++
    const random = randomFrom(this.seed, "change", number)
    const kind = random.weighted(weights)
    const complain = (what: string) => this.complain(number, `${kind}: ${what}`)
    try {
      await kinds[kind]({ ...this.base, random, complain })
    } catch (error) {
      complain(String(error))
    }
  }
}
