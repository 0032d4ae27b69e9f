// Renders the pages once the session is known: before that, every request would be refused.
import { useEffect, type ReactNode } from "react";
import { SIGNED_OUT } from "@/api/client";
import { useSession } from "@/pages/approvals/use-session";
import { Skeleton } from "@/ui";

export function SignedIn({ children }: { children: ReactNode }) {
  const session = useSession();
  const isSignedOut = session.data === null;
  useEffect(() => {
    if (isSignedOut) window.dispatchEvent(new CustomEvent(SIGNED_OUT));
  }, [isSignedOut]);
  return session.isPending || isSignedOut ? <Skeleton lines={6} /> : children;
}
