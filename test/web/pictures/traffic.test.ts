/** Pictures of the pages about requests. */
import { describe } from "@effect/vitest"
import { testPages } from "./pages.ts"

describe("pictures of the pages about requests", () => {
  testPages([
    ["overview", "overview"],
    ["requests", "requests"],
    ["request-streamed", "requests/r3990"],
    ["request-failed", "requests/r3997"],
    ["usage", "usage"],
    ["usage-by-key", "usage?by=key"],
    ["sessions", "sessions"],
    ["playground", "playground"]
  ])
})
