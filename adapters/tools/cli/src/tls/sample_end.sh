
if command -v keytool > /dev/null; then
    for store in p12:PKCS12 jks:JKS; do
        keytool -importcert -noprompt -alias authority -file trust.pem -keystore "trust.${store%:*}" \
            -storetype "${store#*:}" -storepass:file password 2>> keytool.log
    done
    echo "made trust.pem, trust.p12, trust.jks"
else
    echo "made trust.pem; without keytool there is neither JKS nor trust.p12"
fi
rm -f openssl.log keytool.log ./*.srl
echo "the password of all is in the file password; never for production"
