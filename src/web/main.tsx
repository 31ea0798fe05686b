/**
 * The console's entry: the sign-in form, or the page of the route. When the gateway ends the session, the page stays below a dialog that
 * signs in again.
 */
import { render } from "preact"
import { configuration } from "./pages/configuration.tsx"
import { SignIn, SignInAgain } from "./pages/SignIn.tsx"
import { ConfigurationContext } from "./parts/configuration.tsx"
import { Shell } from "./parts/Shell.tsx"
import { restorePreferences } from "./state/preferences.ts"
import { useAtom } from "./state/registry.ts"
import { restoreSession, sessionAtom } from "./state/session.ts"

const Console = () => {
  const session = useAtom(sessionAtom)
  if (session.state === "unknown") return null
  if (session.state === "out" && !session.ended) return <SignIn />
  return (
    <ConfigurationContext.Provider value={configuration}>
      <Shell />
      {session.ended && <SignInAgain />}
    </ConfigurationContext.Provider>
  )
}

await Promise.all([restorePreferences(), restoreSession()])
const place = document.getElementById("console")
if (place !== null) render(<Console />, place)
