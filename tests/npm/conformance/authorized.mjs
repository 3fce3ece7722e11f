// A fetch that logs in by itself as the TypeScript SDK does: for clients that stand before the
// suite's server directly.

import { auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/sdk/client/auth.js";
import {
  ClientCredentialsProvider,
  PrivateKeyJwtProvider,
} from "@modelcontextprotocol/sdk/client/auth-extensions.js";

/** The address of the metadata document that the suite knows. */
export const METADATA_DOCUMENT = "https://conformance-test.local/client-metadata.json";
const REDIRECT = "http://localhost:3000/callback";
const MOST_LOGINS = 3;

/** Somebody whose browser says yes to everything. */
class Person {
  constructor(context) {
    if (context.client_id)
      this.client = { client_id: context.client_id, client_secret: context.client_secret };
  }
  get redirectUrl() {
    return REDIRECT;
  }
  get clientMetadataUrl() {
    return METADATA_DOCUMENT;
  }
  get clientMetadata() {
    return { client_name: "conformance-client", redirect_uris: [REDIRECT] };
  }
  clientInformation() {
    return this.client;
  }
  saveClientInformation(client) {
    this.client = client;
  }
  tokens() {
    return this.given;
  }
  saveTokens(tokens) {
    this.given = tokens;
  }
  codeVerifier() {
    return this.verifier;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  invalidateCredentials(scope) {
    if (scope === "all" || scope === "client") this.client = undefined;
    if (scope === "all" || scope === "tokens") this.given = undefined;
  }
  async redirectToAuthorization(address) {
    const response = await fetch(address, { redirect: "manual" });
    this.code = new URL(response.headers.get("location")).searchParams.get("code");
  }
}

function provider(context) {
  if (context.private_key_pem) {
    const {
      client_id: clientId,
      private_key_pem: privateKey,
      signing_algorithm: algorithm,
    } = context;
    return new PrivateKeyJwtProvider({ clientId, privateKey, algorithm });
  }
  const isMachine = process.env.MCP_CONFORMANCE_SCENARIO.startsWith("auth/client-credentials");
  if (isMachine)
    return new ClientCredentialsProvider({
      clientId: context.client_id,
      clientSecret: context.client_secret,
    });
  return new Person(context);
}

/** A fetch for requests to the server at this URL. */
export function authorizedFetch(serverUrl) {
  const who = provider(JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}"));
  return async (url, init = {}) => {
    for (let logins = 0; ; logins++) {
      const headers = new Headers(init.headers);
      const tokens = await who.tokens();
      if (tokens) headers.set("Authorization", `Bearer ${tokens.access_token}`);
      const response = await fetch(url, { ...init, headers });
      const challenge = extractWWWAuthenticateParams(response);
      const wantsMore = response.status === 403 && challenge.error === "insufficient_scope";
      if ((response.status !== 401 && !wantsMore) || logins === MOST_LOGINS) return response;
      await response.body?.cancel();
      const { resourceMetadataUrl, scope } = challenge;
      const found = { serverUrl, resourceMetadataUrl, scope };
      if ((await auth(who, found)) === "REDIRECT")
        await auth(who, { ...found, authorizationCode: who.code });
    }
  };
}
