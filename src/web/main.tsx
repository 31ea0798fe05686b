/**
 * The console's entry: the sign-in form, or the page of the route.
 */
import { render } from "preact"
import { SignIn } from "./pages/SignIn.tsx"
import { Shell } from "./parts/Shell.tsx"
import { restorePreferences } from "./state/preferences.ts"
import { useAtom } from "./state/registry.ts"
import { restoreSession, sessionAtom } from "./state/session.ts"

const Console = () => {
  const session = useAtom(sessionAtom)
  if (session.state === "unknown") return null
  return session.state === "in" ? <Shell /> : <SignIn ended={session.ended} />
}

await Promise.all([restorePreferences(), restoreSession()])
const place = document.getElementById("console")
if (place !== null) render(<Console />, place)
