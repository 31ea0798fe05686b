/** Pictures of the pages about keys, models and accounts. */
import { describe } from "@effect/vitest"
import { accountNames, keys } from "./data.ts"
import { testPages } from "./pages.ts"

describe("pictures of the pages about keys, models and accounts", () => {
  testPages([
    ["keys", "keys"],
    ["key", `keys/${keys[0]!.id}`],
    ["models", "models"],
    ["model", "models/gpt-4o"],
    ["accounts", "accounts"],
    ["account", `accounts/${encodeURIComponent(accountNames[0]!)}`],
    ["samples", "samples"]
  ])
})
