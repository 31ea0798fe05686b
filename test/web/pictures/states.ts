/**
 * What pages show beside their usual look: dialogs, drawers, menus, empty lists, lists that load or fail, old figures, many rows.
 */
import type { Page } from "playwright-core"
import { accountNames, accounts, facets, histogram, keys, now, pool, requestPage, requests } from "./data.ts"
import { list, type OwnReply } from "./server.ts"

export interface State {
  readonly name: string
  readonly route: string
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

const anAccount = accountNames[0]!
const aKey = keys[0]!
const webhook = { name: "ops", url: "https://hooks.example.com/gateway", secret: "***", events: ["budget.*"] }
const sample = {
  sample_id: "20261121-chat-a1b2c3",
  created_at: now - 90_000_000,
  model: "gpt-4o",
  round_count: 2,
  bytes: 18_400
}
const token = { id: "t1", name: "dashboard", role: "viewer", expires_at: "2027-01-31T00:00:00Z", expired: false }
const nothing = new URLSearchParams()

const manyAccounts = Array.from({ length: 300 }, (_, index) => {
  const like = accounts[index % accounts.length]!
  return {
    ...like,
    identifier: index < accounts.length ? like.identifier : `seat-${index}@${like.email.split("@")[1]}`
  }
})

const manyOfPool = { ...pool, total: 295, available: 260, cooling: 17, out: 18, disabled: 5 }

const noRequests = {
  "/admin/requests": { ...requestPage, items: [], kept: 0, bytes: 0, next_cursor: null },
  "/admin/requests/facets": {
    ...facets,
    facets: Object.fromEntries(Object.keys(facets.facets).map((name) => [name, []])),
    total: 0,
    kept: 0
  },
  "/admin/requests/histogram": { ...histogram, buckets: [] }
}

const longName = "Customer portal, northern (production)"
const longAddress = "the.nightly.evaluation.of.models@a-long-name.lab.example.com"
const limits = { requests: 50_000_000, tokens: 90_000_000 }

/** A key and an account with long names, and limits of eight digits. */
export const longReplies: Readonly<Record<string, OwnReply>> = {
  "/admin/keys": list(
    keys.map((key, index) =>
      index > 0 ? key : {
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
      }
    ),
    nothing,
    { store: { kind: "sqlite", persistent: true, detail: null } }
  ),
  "/admin/accounts": list(
    accounts.map((account, index) => index > 0 ? account : { ...account, identifier: longAddress, email: longAddress }),
    nothing
  ),
  "/admin/requests": {
    ...requestPage,
    items: requests.map((item) => ({
      ...item,
      key_name: item.key === aKey.id ? longName : item.key_name,
      account: item.account === anAccount ? `hosted/${longAddress}` : item.account
    }))
  }
}

export const editLongKey = act("Edit", longName)

const openMenu = press(`Actions ${accountNames[4]!}`)

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
    replies: { "/admin/keys": list([], nothing, { store: { kind: "sqlite", persistent: true, detail: null } }) }
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
    replies: {
      "/admin/accounts": list(manyAccounts, nothing, {
        counts: { all: 300, ready: 260, cooling: 17, out: 18, disabled: 5, failed: 11 }
      })
    }
  },
  {
    name: "overview-300",
    route: "overview",
    replies: { "/admin/accounts": list(manyAccounts, nothing), "/admin/events": manyOfPool }
  },
  {
    name: "accounts-empty",
    route: "accounts",
    replies: {
      "/admin/accounts": list([], nothing, { counts: { all: 0, ready: 0, cooling: 0, out: 0, disabled: 0, failed: 0 } })
    }
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
    name: "webhook-delete",
    route: "webhooks",
    replies: {
      "/admin/webhooks": {
        webhooks: [webhook],
        states: [{ name: "ops", state: "active", waiting: 0, delivered: 12, dropped: 0, last: null }],
        events: [],
        revision: "1"
      }
    },
    open: act("Delete", "ops"),
    ...question
  },
  { name: "token-new", route: "settings", open: press("New token"), ...dialog },
  {
    name: "token-delete",
    route: "settings",
    replies: { "/admin/tokens": { tokens: [token] } },
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
      (page) => page.getByRole("dialog").waitFor()
    ),
    ...question
  },
  {
    name: "sample-delete",
    route: "samples",
    replies: { "/admin/dev/raw-samples": { items: [sample] } },
    open: press(`Delete ${sample.sample_id}`),
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
  }
]
