/**
 * What pages show beside their usual look: dialogs, drawers, menus, empty lists, lists that load or fail, old figures, many rows.
 */
import type { Page } from "playwright-core"
import type { Changed, Json, OwnReply } from "./server.ts"
import type { Route } from "./stage.ts"
import { addresses, keys, now } from "./world.ts"

export interface State {
  readonly name: string
  readonly route: Route
  /** English without it. */
  readonly language?: "en" | "zh"
  /** Of a gateway that has just been started for the first time. */
  readonly fresh?: boolean
  /** Replies of this state by their path, in place of those of the server. */
  readonly replies?: Readonly<Record<string, OwnReply>>
  /** Leads to the state from the page. */
  readonly open?: (page: Page) => Promise<unknown>
  /** What the picture in the wide window is of, if not of the whole window. */
  readonly part?: string
  /** In a narrow window too, or there alone, in dark. */
  readonly narrow?: boolean | "alone"
  /** What is shown is old, and therefore pale. */
  readonly pale?: boolean
}

const press = (name: string, role: "button" | "menuitem" | "link" = "button") => (page: Page) =>
  page.getByRole(role, { name, exact: true }).first().click()

/** Chooses an action of a row. */
const act = (action: string, name: string) => async (page: Page): Promise<void> => {
  await press(`Actions ${name}`)(page)
  await press(action, "menuitem")(page)
}

const fill = (name: string, text: string) => (page: Page) =>
  page.getByRole("dialog").getByRole("textbox", { name, exact: true }).fill(text)

const inTurn = (...steps: ReadonlyArray<(page: Page) => Promise<unknown>>) => async (page: Page): Promise<void> => {
  for (const step of steps) await step(page)
}

const dialog = {
  part: "dialog",
  /** A dialog that is more than a question has another layout in a narrow window. */
  narrow: true
}

const question = { part: "dialog" }

const text = (of: string) => (page: Page) => page.getByText(of).first().waitFor()

/** Rows stand in for what loads. */
const skeleton = (page: Page) => page.locator(".skeleton > [aria-hidden]").first().waitFor()

/** One of the first page, which begins with those that need attention. */
const anAccount = `hosted/${addresses[57]!}`
const aKey = keys[0]!
const nothing = new URLSearchParams()

/** How many accounts are in each state. */
const countsOf = (items: ReadonlyArray<Json>) => {
  const inState = (state: string) => items.filter(({ disabled, health }) => health === state && !disabled).length
  return {
    all: items.length,
    ready: inState("ready"),
    cooling: inState("cooling"),
    out: inState("out"),
    disabled: items.filter(({ disabled }) => disabled).length,
    failed: items.filter(({ test_status }) => test_status === "failed").length
  }
}

/** The names of an account, and of four like it. */
const fiveNames = (name: string): ReadonlyArray<string> =>
  Array.from({ length: 5 }, (_, index) => index === 0 ? name : name.replace("/", `/seat-${index}.`))

/** Five times as many accounts, in their order, and as many of each cause. */
const fiveTimes: Changed = (reply, query) => {
  const size = Number(query.get("page_size") ?? 50)
  const items = (reply.items as ReadonlyArray<Json>).flatMap((like) =>
    Array.from(
      { length: 5 },
      (_, index) =>
        index === 0
          ? like
          : { ...like, identifier: `seat-${index}.${like.identifier}`, email: `seat-${index}.${like.email}` }
    )
  )
  const total = 5 * reply.total
  const counts = reply.counts === undefined
    ? {}
    : { counts: Object.fromEntries(Object.entries(reply.counts).map(([name, count]) => [name, 5 * Number(count)])) }
  const causes = (reply.causes as ReadonlyArray<Json> | undefined)?.map((cause) => ({
    ...cause,
    accounts: 5 * cause.accounts,
    names: cause.names.flatMap(fiveNames).slice(0, 20)
  }))
  return {
    ...reply,
    ...counts,
    ...causes === undefined ? {} : { causes },
    items: items.slice(0, size),
    total,
    total_pages: Math.ceil(total / size)
  }
}

const fiveTimesPool: Changed = (pool) => ({
  ...pool,
  ...Object.fromEntries(
    ["total", "available", "cooling", "out", "disabled", "failed_tests"].map((name) => [name, 5 * pool[name]])
  )
})

const empty: Changed = (reply) => ({ ...reply, items: [], total: 0, total_pages: 0 })

const noRequests: Readonly<Record<string, OwnReply>> = {
  "/admin/requests": ((reply) => ({ ...reply, items: [], kept: 0, bytes: 0, next_cursor: null })) satisfies Changed,
  "/admin/requests/facets": ((reply) => ({
    ...reply,
    facets: Object.fromEntries(Object.keys(reply.facets).map((name) => [name, []])),
    total: 0,
    kept: 0
  })) satisfies Changed,
  "/admin/requests/histogram": ((reply) => ({ ...reply, buckets: [] })) satisfies Changed
}

const longName = "Customer portal, northern (production)"
const longAddress = "the.nightly.evaluation.of.models@a-long-name.lab.example.com"
const limits = { requests: 50_000_000, tokens: 90_000_000 }

const firstOf = (change: (item: Json) => object): Changed => (reply) => ({
  ...reply,
  items: reply.items.map((item: Json, index: number) => index > 0 ? item : change(item))
})

/** A key and an account with long names, and limits of eight digits. */
export const longReplies: Readonly<Record<string, OwnReply>> = {
  "/admin/keys": firstOf((key) => ({
    ...key,
    name: longName,
    limits: [{ ...key.limits[0], ...limits }],
    usage: {
      ...key.usage,
      windows: [{
        ...key.usage.windows[0],
        requests: { limit: limits.requests, used: 12_345_678, remaining: limits.requests - 12_345_678 },
        tokens: { limit: limits.tokens, used: 87_654_321, remaining: limits.tokens - 87_654_321 }
      }]
    }
  })),
  "/admin/accounts": firstOf((account) => ({ ...account, identifier: longAddress, email: longAddress })),
  "/admin/requests": ((reply) => ({
    ...reply,
    items: reply.items.map((item: Json) => ({
      ...item,
      key_name: item.key === aKey.id ? longName : item.key_name,
      account: item.account === anAccount ? `hosted/${longAddress}` : item.account
    }))
  })) satisfies Changed
}

export const editLongKey = act("Edit", longName)

const openMenu = press(`Actions ${anAccount}`)

/** A reply in a stream. */
const said = (content: string): OwnReply =>
  `${
    [
      { choices: [{ index: 0, delta: { role: "assistant", content } }] },
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }
    ].map((chunk) => `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", ...chunk })}\n\n`)
      .join("")
  }data: [DONE]\n\n`

/** What the webhook was sent: its receiver was away for a while. */
const deliveries = [
  ["budget.reached", 204, null, 4, 183],
  ["budget.reached", 204, null, 26, 171],
  ["budget.warning", 503, "HTTP 503: Service Unavailable", 27, 240],
  ["budget.warning", null, "connection refused", 28, 12],
  ["webhook.test", 204, null, 180, 205]
].map(([type, status, error, minutes, ms], index) => ({
  id: `evt_${index}`,
  type,
  at: new Date(now - Number(minutes) * 60_000).toISOString(),
  ms,
  status,
  error
}))

export const states: ReadonlyArray<State> = [
  // Keys
  {
    name: "key-new",
    route: "keys",
    open: inTurn(press("New key"), press("Add a limit"), press("Add a limit"), text("claude-sonnet-4-5")),
    ...dialog
  },
  { name: "key-edit", route: "keys", open: act("Edit", aKey.name), ...dialog },
  { name: "key-delete", route: "keys", open: act("Delete", aKey.name), ...question },
  { name: "keys-hash", route: "keys", open: press("Hash all"), ...question },
  { name: "key-menu", route: "keys", open: press(`Actions ${keys[2]!.name}`) },
  {
    name: "key-error",
    route: "keys",
    open: inTurn(press("New key"), press("Add a limit"), fill("Requests, per day", "many"), press("Create key")),
    ...question
  },
  {
    name: "keys-empty",
    route: "keys",
    replies: { "/admin/keys": empty, "/admin/config": ((reply) => ({ ...reply, keys: [] })) satisfies Changed }
  },
  { name: "keys-loading", route: "keys", replies: { "/admin/keys": "held" }, open: skeleton },
  { name: "keys-failed", route: "keys", replies: { "/admin/keys": "broken" } },
  // Models and routes
  {
    name: "price",
    route: "models",
    open: inTurn(press("Actions claude-sonnet-4-5"), press("Set price", "menuitem")),
    ...dialog
  },
  { name: "route-new", route: "routes", open: press("Add route"), ...dialog },
  { name: "route-edit", route: "routes", open: act("Edit", "gpt-4o"), ...dialog },
  { name: "route-delete", route: "routes", open: act("Delete", "gpt-4o"), ...question },
  { name: "rehearse", route: "routes", open: act("Rehearse", "gpt-4o"), ...dialog },
  // Upstreams
  { name: "upstream-new", route: "upstreams", open: press("Add upstream"), ...dialog },
  {
    name: "upstream-edit",
    route: "upstreams",
    replies: {
      "/admin/upstreams/hosted/models": {
        models: ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5"].map((model, index) => ({
          model,
          listed: true,
          ids: index === 0 ? [model] : []
        })),
        message: null
      }
    },
    open: inTurn(act("Edit", "hosted"), text("claude-opus-4-5")),
    ...dialog
  },
  { name: "upstream-delete", route: "upstreams", open: act("Delete", "hosted"), ...question },
  // Accounts
  { name: "accounts-add", route: "accounts", open: press("Add accounts"), ...dialog },
  { name: "account-note", route: "accounts", open: act("Note", anAccount), ...question },
  { name: "account-menu", route: "accounts", open: openMenu },
  { name: "account-menu", route: "accounts", open: openMenu, narrow: "alone" },
  {
    name: "accounts-delete",
    route: "accounts",
    open: inTurn((page) => page.getByRole("checkbox", { name: "Select this page" }).check(), press("Delete 50")),
    ...question
  },
  {
    name: "accounts-300",
    route: "accounts",
    replies: { "/admin/accounts": fiveTimes }
  },
  {
    name: "overview-300",
    route: "overview",
    replies: { "/admin/accounts": fiveTimes, "/admin/events": fiveTimesPool }
  },
  {
    name: "accounts-empty",
    route: "accounts",
    replies: { "/admin/accounts": ((reply) => ({ ...empty(reply, nothing), counts: countsOf([]) })) satisfies Changed }
  },
  // Requests
  {
    name: "request-drawer",
    route: "requests",
    open: (page) => page.locator(".row-link").nth(3).click(),
    narrow: false
  },
  { name: "requests-row", route: "requests", open: (page) => page.locator("main tbody tr").nth(4).hover() },
  { name: "requests-columns", route: "requests", open: press("Columns") },
  { name: "requests-filter", route: "requests", open: press("Model") },
  { name: "requests-empty", route: "requests", replies: noRequests },
  { name: "requests-loading", route: "requests", replies: { "/admin/requests": "held" } },
  // Other pages
  { name: "navigation", route: "accounts", open: press("Menu"), narrow: "alone" },
  {
    name: "overview-stale",
    route: "overview",
    replies: { "/admin/events": "ends" },
    open: text("Everything here is as of"),
    pale: true
  },
  {
    name: "webhook-new",
    route: "webhooks",
    open: inTurn(press("Add webhook"), text("Without a choice, all events.")),
    ...dialog
  },
  {
    name: "webhook-deliveries",
    route: "webhooks",
    replies: { "/admin/webhooks/deliveries": { name: "ops", deliveries } },
    open: inTurn(act("Deliveries", "ops"), text("HTTP 503")),
    ...dialog
  },
  {
    name: "webhook-delete",
    route: "webhooks",
    open: act("Delete", "ops"),
    ...question
  },
  { name: "token-new", route: "settings", open: press("New token"), ...dialog },
  {
    name: "token-delete",
    route: "settings",
    open: press("Delete dashboard"),
    ...question
  },
  {
    name: "settings-review",
    route: "settings",
    open: inTurn((page) => page.getByLabel("Queue length").fill("240"), press("Review changes")),
    ...dialog
  },
  {
    name: "settings-leave",
    route: "settings",
    open: inTurn((page) => page.getByLabel("Queue length").fill("240"), press("About", "link")),
    ...question
  },
  {
    name: "settings-error",
    route: "settings",
    open: async (page) => {
      await page.getByLabel("Queue length").fill("-3")
      await page.getByLabel("Queue length").blur()
    }
  },
  {
    name: "import-preview",
    route: "transfer",
    open: inTurn(
      (page) =>
        page.getByRole("textbox", { name: "Configuration to import" }).fill(`{ "keys": ["sk-new"], "accounts": [] }`),
      press("Preview import"),
      text("Nothing has changed yet.")
    )
  },
  {
    name: "import-replace",
    route: "transfer",
    open: inTurn(
      (page) =>
        page.getByRole("textbox", { name: "Configuration to import" }).fill(`{ "keys": ["sk-new"], "accounts": [] }`),
      (page) => page.getByRole("combobox", { name: "Mode" }).selectOption("Replace"),
      press("Preview import"),
      press("Replace everything"),
      // The field gets the focus before the changed settings stand above it.
      (page) => page.getByRole("dialog").getByText("runtime.sticky").waitFor(),
      (page) => page.getByRole("dialog").evaluate((dialog) => dialog.scrollTo(0, dialog.scrollHeight))
    ),
    ...question
  },
  {
    name: "sample-delete",
    route: "samples",
    open: act("Delete", "empty-reply"),
    ...question
  },
  {
    name: "palette",
    route: "overview",
    open: inTurn(
      (page) => page.keyboard.press("Control+k"),
      (page) => page.getByRole("dialog").getByRole("combobox").fill("ada"),
      (page) => page.getByRole("option", { name: /Account$/ }).first().waitFor()
    ),
    ...dialog
  },
  {
    name: "shortcuts",
    route: "requests",
    open: inTurn((page) => page.keyboard.press("?"), (page) => page.getByRole("dialog").waitFor()),
    ...dialog
  },
  // Before and beside the pages
  {
    name: "sign-in",
    route: "overview",
    replies: { "/admin/session": { active: false } },
    open: (page) => page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor(),
    narrow: true
  },
  {
    name: "first-run",
    route: "overview",
    fresh: true,
    open: (page) => page.locator(".access").first().waitFor(),
    narrow: true
  },
  { name: "toast", route: "about", open: inTurn(press("Copy all of it"), text("This installation was copied.")) },
  { name: "preferences", route: "about", open: (page) => page.locator(".person > button").click() },
  {
    name: "playground-answered",
    route: "playground",
    replies: { "/v1/chat/completions": said("The capital of Norway is Oslo, at the northern end of the Oslofjord.") },
    open: inTurn(
      // What is measured differs on each run.
      (page) => page.evaluate("performance.now = () => 1_000"),
      (page) => page.getByRole("textbox", { name: "Message", exact: true }).fill("What is the capital of Norway?"),
      press("Send"),
      text("northern end of the Oslofjord")
    ),
    narrow: true
  },
  ...["cache", "cost", "first_event_p95_ms"].map((measure) => ({
    name: `usage-${measure.replace(/_.*/, "")}`,
    route: `usage?measure=${measure}`
  })),
  ...["overview", "requests", "usage", "keys", "accounts", "settings"].map((route) => ({
    name: `${route}-zh`,
    route,
    language: "zh" as const
  }))
]
