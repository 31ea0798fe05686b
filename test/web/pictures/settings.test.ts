/** Pictures of the pages that set up the gateway. */
import { describe } from "@effect/vitest"
import { testPages } from "./pages.ts"

describe("pictures of the pages that set up the gateway", () => {
  testPages([
    ["upstreams", "upstreams"],
    ["upstream", "upstreams/hosted"],
    ["routes", "routes"],
    ["settings", "settings"],
    ["webhooks", "webhooks"],
    ["transfer", "transfer"],
    ["changes", "changes"],
    ["about", "about"]
  ])
})
