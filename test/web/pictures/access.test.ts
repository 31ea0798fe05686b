/** Pictures of the pages about keys, models and accounts. */
import { describe } from "@effect/vitest"
import { testPages } from "./pages.ts"
import { addresses, keys } from "./world.ts"

describe("pictures of the pages about keys, models and accounts", () => {
  testPages([
    ["keys", "keys"],
    ["key", `keys/${keys[0]!.id}`],
    ["models", "models"],
    ["model", "models/gpt-4o"],
    ["accounts", "accounts"],
    ["account", `accounts/${encodeURIComponent(`hosted/${addresses[0]!}`)}`],
    ["samples", "samples"]
  ])
})
